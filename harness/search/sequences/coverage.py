"""The tuples of operations that were tried on a server, and the reasons why others were not."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.protocol.values import dig, text
from harness.report.sequence_coverage import REASONS, coverage_lines
from harness.scenario.player import StepFailure
from harness.search.fuzz.sessions.checks import step_at
from harness.search.sequences.planning import Goal, PlannedSequence
from harness.trace.correlation import Correlation
from harness.trace.frame import Kind
from harness.trace.trace import Trace

# The harness sends it after each restart; a server may reject it.
_HANDSHAKE = "initialize"
_NUMBER = re.compile(r"\d+")
# Why a goal is not covered.
IMPOSSIBLE, REFUSED, STOPPED, NOT_PLAYED = "impossible", "refused", "stopped", "not played"


@dataclass(slots=True)
class Coverage:
    """The goals of a plan, and what became of each.

    `goals` maps a goal to the reason why it is not covered, "" once it is; a reason begins with one
    of the constants above. Impossible are those whose operations the server does not offer.
    """

    goals: dict[Goal, str] = field(default_factory=dict[Goal, str])

    def add(self, goals: Iterable[tuple[Goal, str]]) -> None:
        """Add goals, each with the reason why it is impossible here, "" if it is possible."""
        for goal, reason in goals:
            self.goals[goal] = f"{IMPOSSIBLE}: {reason}" if reason else NOT_PLAYED

    def drop(self, lacks: Mapping[str, str]) -> None:
        """Close open goals of operations that are not played; `lacks` has the reason of each."""
        for goal, state in self.goals.items():
            reasons = [lacks[name] for name in goal.operations if name in lacks]
            if reasons and state == NOT_PLAYED:
                self.goals[goal] = reasons[0]

    def count_play(
        self, sequence: PlannedSequence, trace: Trace, unmet: StepFailure | None
    ) -> None:
        """Count what a play of a sequence covers; `unmet` is the step that stopped it, if any."""
        refusals = _refusals(sequence, trace)
        for index, span in enumerate(sequence.spans):
            stopped = unmet is not None and span.last >= unmet.line
            for goal, places in span.goals:
                if not self.goals.get(goal, ""):
                    continue
                reasons = [refusals[place] for place in (*places, index) if place in refusals]
                if stopped and unmet is not None:
                    if span.first < unmet.line:
                        lacks = unmet.capability
                        reason = f"{IMPOSSIBLE}: needs {lacks}" if lacks else ""
                        self.goals[goal] = reason or f"{STOPPED}: {unmet.message}"
                else:
                    self.goals[goal] = f"{REFUSED}: {reasons[0]}" if reasons else ""

    def open_goals(self, scope: str) -> list[Goal]:
        """Return the goals of a scope that no conversation has reached."""
        return [
            goal
            for goal, reason in self.goals.items()
            if goal.scope == scope and reason == NOT_PLAYED
        ]

    def lines(self) -> Iterator[str]:
        """Yield a line for each kind of goal: how many are covered, and the others by reason."""
        yield from coverage_lines(self.plain())

    def reason_lines(self) -> Iterator[str]:
        """Yield a line for each reason why goals are not covered, with two of them as examples."""
        by_reason: dict[str, list[Goal]] = {}
        for goal, reason in self.goals.items():
            if reason:
                by_reason.setdefault(reason, []).append(goal)
        for reason, goals in by_reason.items():
            some = "; ".join(map(str, goals[:2]))
            yield f"{len(goals):,} {reason} ({some}{'; …' if len(goals) > 2 else ''})"

    def plain(self) -> list[dict[str, Any]]:
        """Return the coverage as JSON: for each kind of goal its counts, and what is uncovered."""
        kinds: dict[str, dict[Goal, str]] = {}
        for goal, reason in self.goals.items():
            kinds.setdefault(title_of(goal), {})[goal] = reason
        return [
            {
                "goals": title,
                "total": len(goals),
                "covered": sum(not reason for reason in goals.values()),
                **{
                    key: sum(reason.startswith(key.replace("_", " ")) for reason in goals.values())
                    for key in REASONS
                },
                "uncovered": [
                    {"operations": list(goal.operations), "reason": reason}
                    for goal, reason in goals.items()
                    if reason
                ],
            }
            for title, goals in kinds.items()
        ]


def title_of(goal: Goal) -> str:
    """Return the words for goals like this one, such as `pairs on one thread`."""
    return f"{_WORDS_OF_LENGTH[len(goal.operations)]} {goal.scope}"


_WORDS_OF_LENGTH = {1: "combinations", 2: "pairs", 3: "triples"}


def _refusals(sequence: PlannedSequence, trace: Trace) -> dict[int, str]:
    """Return the rejected requests of each span, by its index, that the span does not expect."""
    refusals: dict[int, str] = {}
    exchanges = Correlation()
    for frame in trace.frames:
        request = exchanges.feed(frame)
        if request is None or not frame.from_target or frame.kind is not Kind.ERROR:
            continue
        if request.method == _HANDSHAKE:
            continue
        step = step_at(trace, request.seq)
        for place, span in enumerate(sequence.spans):
            if span.first < step <= span.last and request.method not in span.refused:
                message = text(dig(frame.failure, "message"))[:80]
                # Reasons that differ in ids alone are one.
                refusals.setdefault(place, _NUMBER.sub("N", f"{request.method}: {message}"))
    return refusals
