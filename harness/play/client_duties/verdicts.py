"""Verdicts on duties, made from the rows of a judged trace."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

from harness.judge.base import Monitor
from harness.judge.verdict import GRAVITY, Level, Row, Verdict
from harness.protocol.spec.book import Book
from harness.report.causes import Cause, group_by_cause
from harness.report.wire_lines import proof_lines
from harness.trace.trace import Trace

# Wire lines shown for a finding.
MAX_WIRE_LINES: Final = 6


class KnownFinding(NamedTuple):
    """A finding that is not the client's fault: one of `rule` whose `actual` has this text."""

    rule: str
    actual: str


def mark_known(rows: Iterable[Row], known_findings: Sequence[KnownFinding]) -> list[Row]:
    """Return the rows, those of known findings with the verdict KNOWN."""
    return [
        replace(row, verdict=Verdict.KNOWN)
        if any(row.rule == one.rule and one.actual in row.actual for one in known_findings)
        else row
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class DutyVerdict:
    """The verdict on one duty of the client.

    `verdict` is PASS, FAIL, NOT_EXERCISED, or ERROR if the rule itself crashed; `level` MUST,
    SHOULD or INFO. `clause` is the requirement in our words with its place in the specification.
    `expected`, `actual` and `wire`, the messages that prove it, are empty without a violation.
    """

    rule: str
    level: str
    verdict: str
    clause: str
    expected: str = ""
    actual: str = ""
    wire: tuple[str, ...] = ()

    def is_red(self, *, strict: bool = False) -> bool:
        """Return whether the client fails: a MUST is broken, or the rule crashed.

        With `strict` a broken SHOULD counts too.
        """
        levels = (Level.MUST.value, Level.SHOULD.value) if strict else (Level.MUST.value,)
        broken = self.verdict == Verdict.FAIL.value and self.level in levels
        return broken or self.verdict == Verdict.ERROR.value

    @property
    def is_recorded(self) -> bool:
        """Return whether it is only a note: an INFO of a rule that did not crash."""
        return self.level == Level.INFO.value and self.verdict == Verdict.FAIL.value

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON object with the members of this class."""
        return {**asdict(self), "wire": list(self.wire)}


def duty_verdicts(
    book: Book, trace: Trace, duties: Iterable[type[Monitor]], rows: Iterable[Row]
) -> list[DutyVerdict]:
    """Return the verdicts on all duties, in their order, from the rows of their rules.

    A broken duty has one verdict for each cause.
    """
    by_rule: dict[str, list[Row]] = {}
    for row in rows:
        by_rule.setdefault(row.rule, []).append(row)
    return [
        verdict
        for duty in duties
        for verdict in _verdicts_on(book, trace, duty, by_rule.get(duty.id, []))
    ]


def _verdicts_on(
    book: Book, trace: Trace, duty: type[Monitor], rows: list[Row]
) -> Iterator[DutyVerdict]:
    broken = [row for row in rows if GRAVITY[row.verdict] > GRAVITY[Verdict.KNOWN]]
    if not broken:
        verdict = Verdict.PASS if rows else Verdict.NOT_EXERCISED
        yield DutyVerdict(duty.id, str(duty.level), verdict.value, _clause(book, duty.id))
        return
    for cause in group_by_cause(broken):
        yield _verdict_on_cause(book, trace, cause)


def _verdict_on_cause(book: Book, trace: Trace, cause: Cause) -> DutyVerdict:
    row = cause.first
    other_rows = len(cause.rows) - 1
    return DutyVerdict(
        row.rule,
        str(row.level),
        row.verdict.value,
        _clause(book, row.rule, row.clauses),
        row.expected,
        row.actual + (f" (and {other_rows} more like it)" if other_rows else ""),
        tuple(
            proof_lines(
                trace, row.frames, row.places, limit=160, context=0, max_lines=MAX_WIRE_LINES
            )
        ),
    )


def _clause(book: Book, rule: str, clauses: tuple[str, ...] = ()) -> str:
    """Return the violated requirement with its place: `rpc.answer-form: … (line 16)`."""
    of_rule = book.requirements_of(rule)
    meant = [requirement for requirement in of_rule if requirement.id in clauses] or list(of_rule)
    if not meant:
        return ""
    clause = meant[0].clause
    return f"{meant[0].id}: {clause.statement} ({clause.document}, line {clause.line})"
