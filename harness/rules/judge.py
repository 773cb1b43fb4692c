"""Runs all rules over a trace, stored or live.

Here: dispatch by topic (so that a frame costs what the rules interested in it cost), the handling
of set-up steps, of the end, and of rules that crash. Not here: any rule; what findings mean for
the run (baseline, exit status).
"""

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from harness.rules.base import Handler, Monitor, Outcomes, Topic, Violation, Witness, all_rules
from harness.rules.verdict import Row, Verdict
from harness.trace.frame import Direction, Frame, Kind, Origin
from harness.trace.owed import Owed
from harness.trace.trace import End, Mark, Trace
from harness.trace.views import Conversation

# Kept per rule and trace; more of the same adds nothing, and memory stays flat.
MAX_VIOLATIONS = 20
MAX_WITNESSES = 200


class Judge:
    """Judges one trace: `feed` frames and marks in order, then `finish`.

    `rules` defaults to all.
    """

    def __init__(
        self, book: Any, trace: Trace, *, rules: Iterable[type[Monitor]] | None = None
    ) -> None:
        self.conversation = Conversation()
        self.owed = Owed()
        chosen = list(all_rules().values() if rules is None else rules)
        self.monitors = [r(book, self.conversation, self.owed, trace) for r in chosen]
        self._topics: dict[Topic, list[tuple[Monitor, Handler]]] = defaultdict(list)
        self._rows: dict[str, list[Row]] = {r.id: [] for r in chosen}
        self._seen: set[tuple[str, str]] = set()
        self._broken: set[str] = set()
        self._setup = False
        for monitor in self.monitors:
            for name in dir(type(monitor)):
                for topic in getattr(getattr(type(monitor), name, None), "topics", ()):
                    self._topics[topic].append((monitor, getattr(type(monitor), name)))

    def feed(self, frame: Frame) -> None:
        """Judge one frame."""
        self.conversation.feed(frame)
        self.owed.feed(frame)
        for topic in self._topics_of(frame):
            for monitor, handler in self._topics.get(topic, ()):
                if monitor.id not in self._broken:
                    self._take(monitor, handler, frame)

    def feed_mark(self, mark: Mark) -> None:
        """Take a mark; frames within a set-up step give no witness."""
        self.owed.feed_mark(mark)
        if mark.kind == "setup":
            self._setup = bool(mark.data.get("active"))

    def finish(self, end: End) -> list[Row]:
        """Judge what never came (only when QUIESCENT) and give all rows."""
        self._setup = False
        for monitor in self.monitors:
            if end is End.QUIESCENT and monitor.id not in self._broken:
                self._take(monitor, _finish, None)
        return [row for rows in self._rows.values() for row in rows]

    def _topics_of(self, frame: Frame) -> list[Topic]:
        if frame.origin is Origin.HARNESS:
            topics: list[Topic] = [("own", "")]
            if frame.kind is Kind.REQUEST:
                topics.append(("sent", frame.method))
            return topics
        topics = [("kind", str(frame.kind))]
        if frame.kind in (Kind.NOTIFICATION, Kind.REQUEST):
            topics.append(("method", frame.method))
        elif frame.direction is Direction.FROM_TARGET:
            asked = self.conversation.request_of(frame)
            if asked is not None:
                topics.append(("answer", asked.method))
        return topics

    def _take(
        self, monitor: Monitor, handler: Callable[[Any, Any], Outcomes], frame: Frame | None
    ) -> None:
        try:
            self._keep(monitor, handler(monitor, frame))
        except Exception:  # a rule that breaks is ERROR, never a pass and never the target's fault
            self._broken.add(monitor.id)
            row = Row(
                rule=monitor.id,
                subject="the rule itself",
                verdict=Verdict.ERROR,
                level=monitor.level,
                frames=() if frame is None else (frame.seq,),
                expected="the rule judges every trace",
                actual=traceback.format_exc(limit=-3),
            )
            self._rows[monitor.id].append(row)

    def _keep(self, monitor: Monitor, outcomes: Outcomes) -> None:
        rows = self._rows[monitor.id]
        for outcome in outcomes or ():
            if isinstance(outcome, Violation):
                if len(rows) < MAX_VIOLATIONS + MAX_WITNESSES:
                    rows.append(_violation_row(monitor, outcome))
            elif not self._setup and (monitor.id, outcome.subject) not in self._seen:
                if len(rows) < MAX_WITNESSES:
                    self._seen.add((monitor.id, outcome.subject))
                    rows.append(_witness_row(monitor, outcome))


def _finish(monitor: Monitor, _: None) -> Outcomes:
    return monitor.finish()


def _witness_row(monitor: Monitor, outcome: Witness) -> Row:
    return Row(
        rule=monitor.id,
        subject=outcome.subject,
        verdict=Verdict.PASS,
        level=monitor.level,
        frames=tuple(frame.seq for frame in outcome.frames),
    )


def _violation_row(monitor: Monitor, outcome: Violation) -> Row:
    return Row(
        rule=monitor.id,
        subject=outcome.subject,
        verdict=Verdict.FAIL,
        level=outcome.level or monitor.level,
        frames=tuple(frame.seq for frame in outcome.frames),
        expected=outcome.expected,
        actual=outcome.actual,
    )


def judge(book: Any, trace: Trace, *, rules: Iterable[type[Monitor]] | None = None) -> list[Row]:
    """Judge a stored trace: the same monitors, fed from the file."""
    return judged(book, trace, rules=rules).finish(trace.end)


def judged(book: Any, trace: Trace, *, rules: Iterable[type[Monitor]] | None = None) -> Judge:
    """A judge that has seen all frames and marks of a trace, and not its end."""
    seat = Judge(book, trace, rules=rules)
    marks = sorted(trace.marks, key=lambda mark: mark.after)
    position = 0
    for frame in trace.frames:
        while position < len(marks) and marks[position].after < frame.seq:
            seat.feed_mark(marks[position])
            position += 1
        seat.feed(frame)
    for mark in marks[position:]:
        seat.feed_mark(mark)
    return seat


def witnessed(rows: Iterable[Row], rule_id: str) -> bool:
    """Whether a rule has a witness among these rows."""
    return any(row.rule == rule_id and row.verdict is Verdict.PASS for row in rows)
