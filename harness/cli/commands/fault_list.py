"""`harness faulty --list`: every fault, the rule that it breaks and the requirement behind it.

Faults of clients, which break duties, are listed too: they apply to stored traces only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.errors import UsageError
from harness.faults.base import Fault, all_faults
from harness.faults.client_duties import client_faults
from harness.faults.live.fault import reason_not_live
from harness.judge.base import Side
from harness.judge.rules.discovery import every_rule
from harness.protocol.spec.loading import load_book
from harness.trace.nearest import nearest, unknown_name

LISTED = "harness faulty --list"
_RULES = "harness list"
# Live faults suggested in place of one that is not live.
_MAX_OFFERED = 5
_OF_CLIENTS = "it is a client's, and a server with faults says nothing in its client's name"


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault. `why` is the reason if it is not `live`: it applies to stored traces only.

    `sentences` are the requirements that its rule judges, with their place in the specification.
    """

    id: str
    rule: str
    level: str
    surface: str
    reason: str
    live: bool
    why: str
    sentences: tuple[str, ...]
    side: str


def find_faults(words: Sequence[str] = (), rule: str = "") -> list[FaultRow]:
    """Return the faults whose id, rule, reason or requirements contain all `words`.

    With `rule`, only those of that rule or rule family; raises `UsageError` if it is unknown.
    """
    _check_rule(rule)
    fault_rows = [_row(fault) for fault in faults_by_id().values()]
    folded = [word.casefold() for word in words]
    return [
        row
        for row in fault_rows
        if (not rule or row.rule == rule or row.rule.startswith(f"{rule}."))
        and all(word in _search_text(row) for word in folded)
    ]


def faults_by_id() -> dict[str, Fault]:
    """Return every fault by its id, those of servers first."""
    return {**all_faults(), **client_faults()}


def _check_rule(rule: str) -> None:
    names = {rule_name for name in every_rule() for rule_name in (name, name.partition(".")[0])}
    if rule and rule not in names:
        raise UsageError(f"--rule: {unknown_name('rule', rule, names, listed=_RULES)}")


def text_lines(rows: Sequence[FaultRow]) -> Iterator[str]:
    """Yield two or more lines per fault (id, rule, level, reason, requirements), then a count."""
    for row in rows:
        whose = ", of clients" if row.side == Side.CLIENT else ""
        stored = "" if row.live else ", stored traces only"
        yield f"{row.id} ({row.rule}, {row.level}{whose}{stored})"
        yield from (f"    {line}" for line in _fault_lines(row))
    live = sum(row.live for row in rows)
    clients = sum(row.side == Side.CLIENT for row in rows)
    also = f", {clients} of clients" if clients else ""
    yield f"{len(rows)} faults, {live} of them live{also}"


def explain_fault(name: str) -> Iterator[str]:
    """Yield the lines of `harness explain` for a known fault."""
    row = _row(faults_by_id()[name])
    yield f"{row.id} (fault): breaks the rule {row.rule} ({row.level})"
    yield ""
    yield from _fault_lines(row)
    yield ""
    if row.live:
        yield f"put it before a server: harness faulty --fault {row.id} -- SERVER"
    yield f"the rule: harness explain {row.rule}"


def _fault_lines(row: FaultRow) -> Iterator[str]:
    yield row.reason
    for sentence in row.sentences:
        yield f"breaks: {sentence}"
    if not row.live:
        yield f"not live: {row.why}"


def to_plain(rows: Sequence[FaultRow]) -> list[dict[str, Any]]:
    """Return each fault as a JSON object."""
    return [asdict(row) for row in rows]


def live_fault(name: str) -> Fault:
    """Return the live fault with this id.

    Raises `UsageError` if it is unknown or not live; the message suggests similar ones.
    """
    faults = all_faults()
    fault = faults_by_id().get(name)
    if fault is None:
        ids = [candidate.id for candidate in faults.values() if not reason_not_live(candidate)]
        raise UsageError(unknown_name("fault", name, ids, listed=LISTED))
    if name not in faults:
        raise UsageError(f"the fault {name} is for stored traces only: {_OF_CLIENTS}")
    reason = reason_not_live(fault)
    if reason:
        raise UsageError(
            f"the fault {name} is for stored traces only: {reason}{_alternatives(fault)}"
        )
    return fault


def _alternatives(fault: Fault) -> str:
    """Return a hint with live faults of the same rule or family, or a similar id; "" if none."""
    family = fault.rule.partition(".")[0]
    live = [other for other in all_faults().values() if not reason_not_live(other)]
    near = [other.id for other in live if other.rule == fault.rule]
    near += [
        other.id for other in live if other.rule.startswith(f"{family}.") and other.id not in near
    ]
    alike = nearest(fault.id, [other.id for other in live], cutoff=0.4)
    near = near or ([alike] if alike else [])
    return f"; live ones near it: {', '.join(near[:_MAX_OFFERED])}" if near else ""


def _row(fault: Fault) -> FaultRow:
    rule = every_rule()[fault.rule]
    clauses = [requirement.clause for requirement in load_book().requirements_of(fault.rule)]
    sentences = tuple(
        f"{clause.statement} ({clause.document}, {clause.heading})" for clause in clauses
    )
    reason = _OF_CLIENTS if rule.side is Side.CLIENT else reason_not_live(fault)
    return FaultRow(
        fault.id,
        fault.rule,
        str(rule.level),
        rule.surface,
        fault.reason,
        not reason,
        reason,
        sentences,
        str(rule.side),
    )


def _search_text(row: FaultRow) -> str:
    return " ".join((row.id, row.rule, row.reason, *row.sentences)).casefold()
