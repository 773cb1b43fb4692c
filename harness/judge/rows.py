"""The rows of one trace: the outcomes of the monitors of all connections, up to limits."""

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from harness.judge.base import Monitor, Outcome, Side, Violation, Witness
from harness.judge.verdict import Row, Verdict
from harness.trace.frame import Direction, Frame

# Rows kept per rule and trace: more would add nothing, and memory use stays bounded.
MAX_VIOLATIONS = 20
MAX_WITNESSES = 200
# The subject of the row of a rule that crashed.
CRASH_SUBJECT = "the rule itself"
# The direction of the messages that a rule of a side does not judge.
_OTHER_SENDER = {Side.SERVER: Direction.TO_TARGET, Side.CLIENT: Direction.FROM_TARGET}


class TraceRows:
    """The rows of one trace, up to limits, and the rules that crashed.

    `has_ambiguous_id` returns whether a sender reused the id of one of the messages while in use.
    """

    def __init__(self, has_ambiguous_id: Callable[[Iterable[Frame], Direction], bool]) -> None:
        self._has_ambiguous_id = has_ambiguous_id
        self._witnesses: dict[str, list[Row]] = defaultdict(list)
        self._violations: dict[str, list[Row]] = defaultdict(list)
        self._witnessed: set[tuple[str, str]] = set()
        self._violated: set[tuple[str, str]] = set()
        self.crashed_rules: set[str] = set()
        self.new_violations: list[Row] = []
        """Violations not taken yet, in the order in which they were found."""

    def sorted_rows(self, rule_order: Mapping[str, int]) -> list[Row]:
        """Return all rows, sorted by rule as `rule_order` says."""
        rules = sorted(self._witnesses.keys() | self._violations.keys(), key=rule_order.__getitem__)
        return [
            row
            for rule in rules
            for rows in (self._witnesses, self._violations)
            for row in rows.get(rule, ())
        ]

    def add_outcomes(self, monitor: Monitor, outcomes: Iterable[Outcome], *, setup: bool) -> None:
        """Add rows for outcomes, with `setup` for violations only.

        A violation is dropped if it is about an id that the side not judged made ambiguous.
        """
        for outcome in outcomes:
            if isinstance(outcome, Violation):
                other_sender = _OTHER_SENDER[monitor.side]
                if outcome.blame_harness or not self._has_ambiguous_id(
                    outcome.frames, other_sender
                ):
                    self._add_violation(monitor, outcome)
            elif not setup:
                self._add_witness(monitor, outcome)

    def record_crash(self, monitor: Monitor, frame: Frame | None) -> None:
        """Add an ERROR row for a rule that raised, and stop running the rule."""
        self.crashed_rules.add(monitor.id)
        row = Row(
            rule=monitor.id,
            subject=CRASH_SUBJECT,
            verdict=Verdict.ERROR,
            level=monitor.level,
            frames=() if frame is None else (frame.seq,),
            expected="the rule judges every trace",
            actual=traceback.format_exc(limit=-3),
        )
        self._violations[monitor.id].append(row)
        self.new_violations.append(row)

    def _add_witness(self, monitor: Monitor, outcome: Witness) -> None:
        key = monitor.id, outcome.subject
        if key in self._witnessed:
            return
        rows = self._witnesses[monitor.id]
        if len(rows) < MAX_WITNESSES:
            self._witnessed.add(key)
            rows.append(_witness_row(monitor, outcome))

    def _add_violation(self, monitor: Monitor, outcome: Violation) -> None:
        rows, key = self._violations[monitor.id], (monitor.id, outcome.subject)
        if len(rows) >= MAX_VIOLATIONS or (monitor.once and key in self._violated):
            return
        self._violated.add(key)
        rows.append(_violation_row(monitor, outcome))
        self.new_violations.append(rows[-1])


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
