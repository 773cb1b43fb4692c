"""The rows of one trace: what the monitors of all connections found, bounded."""

import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping

from harness.judge.base import Monitor, Outcome, Violation, Witness
from harness.judge.verdict import Row, Verdict
from harness.trace.frame import Frame

# Kept per rule and trace; more of the same adds nothing, and memory stays flat.
MAX_VIOLATIONS = 20
MAX_WITNESSES = 200
# The subject of the row of a rule that crashed.
BROKEN = "the rule itself"


class TraceRows:
    """The rows of one trace, bounded, and the rules that broke."""

    def __init__(self) -> None:
        self._witnesses: dict[str, list[Row]] = defaultdict(list)
        self._violations: dict[str, list[Row]] = defaultdict(list)
        self._seen: set[tuple[str, str]] = set()
        self._found: set[tuple[str, str]] = set()
        self.broken: set[str] = set()
        self.fresh: list[Row] = []
        """Violations that nobody has taken yet, in the order in which they were found."""

    def rows(self, places: Mapping[str, int]) -> list[Row]:
        """All rows, in the order that the `places` of the rules give."""
        found = sorted(self._witnesses.keys() | self._violations.keys(), key=places.__getitem__)
        return [
            row
            for rule in found
            for rows in (self._witnesses, self._violations)
            for row in rows.get(rule, ())
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
        self.fresh.append(row)

    def _witness(self, monitor: Monitor, outcome: Witness) -> None:
        key = monitor.id, outcome.subject
        if key in self._seen:
            return
        rows = self._witnesses[monitor.id]
        if len(rows) < MAX_WITNESSES:
            self._seen.add(key)
            rows.append(_witness_row(monitor, outcome))

    def _violation(self, monitor: Monitor, outcome: Violation) -> None:
        rows, key = self._violations[monitor.id], (monitor.id, outcome.subject)
        if len(rows) >= MAX_VIOLATIONS or (monitor.once and key in self._found):
            return
        self._found.add(key)
        rows.append(_violation_row(monitor, outcome))
        self.fresh.append(rows[-1])


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
