"""Changes between two runs, as values; every form of output is a function of them."""

from dataclasses import dataclass, field
from enum import StrEnum

from harness.judge.verdict import Verdict
from harness.report.results.report import Report

PLAYED = (Verdict.PASS, Verdict.KNOWN, Verdict.FAIL)


class Kind(StrEnum):
    """The kinds of change, the most important first; the order is that of the output."""

    REGRESSED = "regressed"
    CAPABILITY_GONE = "no longer offered"
    MENDED = "mended"
    CAPABILITY_NEW = "newly offered"
    BROKEN_ANEW = "broken where nothing was judged before"
    UNJUDGED = "no longer judged"
    CHOICE = "chosen differently"
    BREAKING = "messages, breaking"
    ADDITIVE = "messages, additive"


@dataclass(frozen=True, slots=True)
class TracePlace:
    """The trace that shows one side of a change; `frame` is the message's number, -1 for none."""

    trace: str = ""
    frame: int = -1


NO_PLACE = TracePlace()


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `before` and `after` describe its two sides, `note` has more.

    It `counts` if it makes the comparison fail: something got worse, or a client may break. It is
    `known` if it concerns a deviation that a profile or baseline accepts.
    """

    kind: Kind
    subject: str
    before: str
    after: str
    note: str = ""
    counts: bool = False
    known: bool = False
    shown_before: TracePlace = NO_PLACE
    shown_after: TracePlace = NO_PLACE


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run, and the user's name for it."""

    name: str
    report: Report

    @property
    def played_scenarios(self) -> set[str]:
        """The scenarios that were played and judged."""
        return {scenario.id for scenario in self.report.scenarios if scenario.verdict in PLAYED}


@dataclass(slots=True)
class Comparison:
    """All differences between two runs, and remarks on what could not be compared.

    `unsteady` are those that chance may have made: they never count. `remarks` are what the reader
    must know about the two runs before the differences mean anything.
    """

    before: Run
    after: Run
    common: int = 0
    only_before: list[str] = field(default_factory=list[str])
    only_after: list[str] = field(default_factory=list[str])
    changes: list[Change] = field(default_factory=list[Change])
    unsteady: list[Change] = field(default_factory=list[Change])
    remarks: list[str] = field(default_factory=list[str])

    @property
    def worse(self) -> bool:
        """Return whether anything got worse, or may break a client."""
        return any(change.counts for change in self.changes)
