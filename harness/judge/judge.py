"""Runs all rules over a trace, stored or live.

Here: dispatch by topic (so that a frame costs what the rules interested in it cost), the handling
of set-up steps, of the end, and of rules that crash. Not here: any rule; what a frame is and which
topics it has (surface); what findings mean for the run (baseline, exit status).
"""

import traceback
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, cast

from harness.judge.base import Handler, Monitor, Outcome, Violation, Witness
from harness.judge.verdict import Row, Verdict
from harness.spec.book import Book
from harness.surface.base import Surface, Topic, Topics
from harness.surface.known import surface_named
from harness.trace.frame import Frame
from harness.trace.marks import Closed, MarkBody, Setup
from harness.trace.trace import End, Mark, Trace

# Kept per rule and trace; more of the same adds nothing, and memory stays flat.
MAX_VIOLATIONS = 20
MAX_WITNESSES = 200
# A target may make up names without end; who listens is remembered for this many sets of topics.
MAX_TOPICS = 500
# The subject of the row of a rule that crashed.
BROKEN = "the rule itself"


class Judge:
    """Judges one trace: `feed` frames and marks in order, then `finish`.

    Every connection has its own monitors of the `rules` (see `Monitor`). Rules of another surface
    than the trace's are left out. Raises `ValueError` for a trace of an unknown surface.
    """

    def __init__(self, book: Book, trace: Trace, rules: Iterable[type[Monitor]]) -> None:
        self._book = book
        self._trace = trace
        self._surface = surface_named(trace.header.surface)
        self._plan = _plan_of(tuple(one for one in rules if one.surface == self._surface.name))
        self._ledger = _Ledger()
        self._seats: dict[str, _ConnectionJudge] = {}
        self._setup = False

    def feed(self, frame: Frame) -> None:
        """Judge one frame."""
        seat = self._seats.get(frame.connection) or self._new_seat(frame.connection)
        seat.feed(frame, setup=self._setup)

    def _new_seat(self, connection: str) -> "_ConnectionJudge":
        seat = _ConnectionJudge(self._plan, self._ledger, self._surface, self._book, self._trace)
        self._seats[connection] = seat
        seat.mark_setup(active=self._setup)
        return seat

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Take a mark; frames within a set-up step give no witness.

        A mark that names a connection is about that one. Another is about the only connection
        there is, and with several about none of them in particular. A connection that the harness
        ended (`closed`) is judged on what came, not on what did not.
        """
        named = mark.body.about
        if isinstance(mark.body, Setup):
            self._setup = mark.body.active
            for seat in self._seats.values():
                seat.mark_setup(active=self._setup)
        elif isinstance(mark.body, Closed):
            seat = self._seats.get(mark.body.connection)
            if seat is not None:
                seat.closed = True
        elif named is not None and named not in self._seats:
            self._new_seat(named)
        open_seats = {name: seat for name, seat in self._seats.items() if not seat.closed}
        for name, seat in open_seats.items():
            seat.owed.feed_mark(mark)
            if len(open_seats) == 1 or name == named:
                seat.feed_mark(mark, setup=self._setup)

    @property
    def owed(self) -> list[Any]:
        """What is owed on each connection that the harness has not ended."""
        return [seat.owed for seat in self._seats.values() if not seat.closed]

    def finish(self, end: End) -> list[Row]:
        """Judge what never came (only when QUIESCENT) and give all rows."""
        if end is End.QUIESCENT:
            for seat in self._seats.values():
                if not seat.closed:
                    seat.finish()
        return self._ledger.rows(self._plan.rules)


class _Ledger:
    """The rows of one trace, bounded, and the rules that broke."""

    def __init__(self) -> None:
        self._witnesses: dict[str, list[Row]] = defaultdict(list)
        self._violations: dict[str, list[Row]] = defaultdict(list)
        self._seen: set[tuple[str, str]] = set()
        self._found: set[tuple[str, str]] = set()
        self.broken: set[str] = set()

    def rows(self, rules: Iterable[type[Monitor]]) -> list[Row]:
        """All rows, in the order of these rules."""
        return [
            row
            for rule in rules
            for rows in (self._witnesses, self._violations)
            for row in rows.get(rule.id, ())
        ]

    def keep(self, monitor: Monitor, outcomes: Iterable[Outcome], *, setup: bool) -> None:
        """Turn outcomes into rows."""
        for outcome in outcomes:
            if isinstance(outcome, Violation):
                self._violation(monitor, outcome)
            elif not setup:
                self._witness(monitor, outcome)

    def broke(self, monitor: Monitor, frame: Frame | None) -> None:
        """A rule that raises is ERROR, never a pass and never the target's fault."""
        self.broken.add(monitor.id)
        row = Row(
            rule=monitor.id,
            subject=BROKEN,
            verdict=Verdict.ERROR,
            level=monitor.level,
            frames=() if frame is None else (frame.seq,),
            expected="the rule judges every trace",
            actual=traceback.format_exc(limit=-3),
        )
        self._violations[monitor.id].append(row)

    def _witness(self, monitor: Monitor, outcome: Witness) -> None:
        rows, key = self._witnesses[monitor.id], (monitor.id, outcome.subject)
        if key not in self._seen and len(rows) < MAX_WITNESSES:
            self._seen.add(key)
            rows.append(_witness_row(monitor, outcome))

    def _violation(self, monitor: Monitor, outcome: Violation) -> None:
        rows, key = self._violations[monitor.id], (monitor.id, outcome.subject)
        if len(rows) >= MAX_VIOLATIONS or (monitor.once and key in self._found):
            return
        self._found.add(key)
        rows.append(_violation_row(monitor, outcome))


# A rule, by its place in the plan, and one of its handlers.
Bound = tuple[int, Handler]


@cache
def _handlers_of(rule: type[Monitor]) -> tuple[tuple[Topic, Handler], ...]:
    """What a rule wants to see."""
    return tuple(
        (topic, cast("Handler", handler))
        for handler in (getattr(rule, name, None) for name in dir(rule))
        for topic in getattr(handler, "topics", ())
    )


@dataclass(slots=True)
class _Plan:
    """Which of some rules want what; made once, since each connection of each trace needs it.

    `finishing` are the places of those that judge what never came.
    """

    rules: tuple[type[Monitor], ...]
    topics: dict[Topic, list[Bound]]
    finishing: list[int]
    remembered: dict[Topics, list[Bound]] = field(default_factory=dict[Topics, list[Bound]])

    def bound(self, topics: Topics) -> list[Bound]:
        """Whoever wants any of these; looked up once for the same topics."""
        found = self.remembered.get(topics)
        if found is None:
            found = [bound for topic in topics for bound in self.topics.get(topic, ())]
            if len(self.remembered) < MAX_TOPICS:
                self.remembered[topics] = found
        return found


@lru_cache(maxsize=32)
def _plan_of(rules: tuple[type[Monitor], ...]) -> _Plan:
    topics: dict[Topic, list[Bound]] = defaultdict(list)
    for place, rule in enumerate(rules):
        for topic, handler in _handlers_of(rule):
            topics[topic].append((place, handler))
    finishing = [place for place, rule in enumerate(rules) if rule.finish is not Monitor.finish]
    return _Plan(rules, dict(topics), finishing)


class _ConnectionJudge:
    """One connection: its view, what is owed on it, its monitors."""

    def __init__(
        self, plan: _Plan, ledger: _Ledger, surface: Surface[Any, Any], book: Book, trace: Trace
    ) -> None:
        self._plan = plan
        self._ledger = ledger
        self._topics_of = surface.topics_of
        self.closed = False
        self._book = book
        self._view = surface.view()
        self.owed = surface.ledger()
        self._monitors = [rule(book, self._view, self.owed, trace) for rule in plan.rules]

    def mark_setup(self, *, active: bool) -> None:
        for monitor in self._monitors:
            monitor.setup = active

    def feed(self, frame: Frame, *, setup: bool) -> None:
        self._view.feed(frame)
        self.owed.feed(frame)
        broken = self._ledger.broken
        for place, handler in self._plan.bound(self._topics_of(frame, self._view, self._book)):
            monitor = self._monitors[place]
            if broken and monitor.id in broken:
                continue
            try:
                outcomes = handler(monitor, frame)
                if outcomes is not None:
                    self._ledger.keep(monitor, outcomes, setup=setup)
            except Exception:
                self._ledger.broke(monitor, frame)

    def feed_mark(self, mark: Mark[MarkBody], *, setup: bool) -> None:
        for place, handler in self._plan.topics.get(("mark", mark.kind), ()):
            monitor = self._monitors[place]
            if monitor.id in self._ledger.broken:
                continue
            try:
                self._ledger.keep(monitor, handler(monitor, mark) or (), setup=setup)
            except Exception:
                self._ledger.broke(monitor, None)

    def finish(self) -> None:
        for place in self._plan.finishing:
            monitor = self._monitors[place]
            if monitor.id in self._ledger.broken:
                continue
            try:
                self._ledger.keep(monitor, monitor.finish() or (), setup=False)
            except Exception:
                self._ledger.broke(monitor, None)


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
        verdict=Verdict.ERROR if outcome.blame_harness else Verdict.FAIL,
        level=outcome.level or monitor.level,
        frames=tuple(frame.seq for frame in outcome.frames),
        expected=outcome.expected,
        actual=outcome.actual,
        clauses=outcome.clauses,
        places=outcome.places,
    )


def judge(book: Book, trace: Trace, rules: Iterable[type[Monitor]]) -> list[Row]:
    """Judge a stored trace: the same monitors, fed from the file."""
    return judged(book, trace, rules).finish(trace.end)


def judged(book: Book, trace: Trace, rules: Iterable[type[Monitor]]) -> Judge:
    """A judge that has seen all frames and marks of a trace, and not its end."""
    seat = Judge(book, trace, rules)
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
