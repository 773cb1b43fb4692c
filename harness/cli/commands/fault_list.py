"""`harness faulty --list`: every fault, the rule that it breaks and the sentence behind it.

Those of clients, which break the duties, are listed too: they are for stored traces alone.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from harness.errors import UsageError
from harness.faults.base import Fault, all_faults
from harness.faults.client_duties import client_faults
from harness.faults.live.fault import why_not_live
from harness.judge.base import Side
from harness.judge.rules.discovery import every_rule
from harness.protocol.spec.loading import load_book
from harness.trace.nearest import nearest, unknown

LISTED = "harness faulty --list"
_RULES = "harness list"
# So many live faults are offered in the place of one that is none.
_OFFERED = 5
_OF_CLIENTS = "it is a client's, and a server with faults says nothing in its client's name"


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault for a reader. `live` is false for one of stored traces alone, and `why` says why.

    `sentences` are the requirements that its rule judges, in our words, with the place in the text.
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


def rows(words: Sequence[str] = (), rule: str = "") -> list[FaultRow]:
    """The faults in which each of these words stands somewhere, of one rule or family if given.

    Raises `UsageError` for a rule that there is not.
    """
    _check_rule(rule)
    fault_rows = [_row(fault) for fault in known().values()]
    folded = [word.casefold() for word in words]
    return [
        row
        for row in fault_rows
        if (not rule or row.rule == rule or row.rule.startswith(f"{rule}."))
        and all(word in _searched(row) for word in folded)
    ]


def known() -> dict[str, Fault]:
    """Every fault by its id, those of servers first."""
    return {**all_faults(), **client_faults()}


def _check_rule(rule: str) -> None:
    names = {rule_name for name in every_rule() for rule_name in (name, name.partition(".")[0])}
    if rule and rule not in names:
        raise UsageError(f"--rule: {unknown('rule', rule, names, listed=_RULES)}")


def text_lines(found: Sequence[FaultRow]) -> Iterator[str]:
    """Two or more lines for each: id, rule and level; what is wrong; the sentences."""
    for row in found:
        whose = ", of clients" if row.side == Side.CLIENT else ""
        stored = "" if row.live else ", stored traces only"
        yield f"{row.id} ({row.rule}, {row.level}{whose}{stored})"
        yield from (f"    {line}" for line in _told(row))
    live = sum(row.live for row in found)
    clients = sum(row.side == Side.CLIENT for row in found)
    also = f", {clients} of clients" if clients else ""
    yield f"{len(found)} faults, {live} of them live{also}"


def explained(name: str) -> Iterator[str]:
    """The lines of `harness explain` for a fault that there is."""
    row = _row(known()[name])
    yield f"{row.id} (fault): breaks the rule {row.rule} ({row.level})"
    yield ""
    yield from _told(row)
    yield ""
    if row.live:
        yield f"put it before a server: harness faulty --fault {row.id} -- SERVER"
    yield f"the rule: harness explain {row.rule}"


def _told(one: FaultRow) -> Iterator[str]:
    yield one.reason
    for sentence in one.sentences:
        yield f"breaks: {sentence}"
    if not one.live:
        yield f"not live: {one.why}"


def json_text(found: Sequence[FaultRow]) -> str:
    """A list of objects."""
    return json.dumps([asdict(row) for row in found], indent=1, ensure_ascii=False)


def live_fault(name: str) -> Fault:
    """The live fault of this id. Raises `UsageError`, with the nearest one where there is none."""
    faults = all_faults()
    fault = known().get(name)
    if fault is None:
        ids = [candidate.id for candidate in faults.values() if not why_not_live(candidate)]
        raise UsageError(unknown("fault", name, ids, listed=LISTED))
    if name not in faults:
        raise UsageError(f"the fault {name} is for stored traces only: {_OF_CLIENTS}")
    reason = why_not_live(fault)
    if reason:
        raise UsageError(f"the fault {name} is for stored traces only: {reason}{_instead(fault)}")
    return fault


def _instead(fault: Fault) -> str:
    """Live faults of the same rule, or of its family."""
    family = fault.rule.partition(".")[0]
    live = [other for other in all_faults().values() if not why_not_live(other)]
    near = [other.id for other in live if other.rule == fault.rule]
    near += [
        other.id for other in live if other.rule.startswith(f"{family}.") and other.id not in near
    ]
    alike = nearest(fault.id, [other.id for other in live], cutoff=0.4)
    near = near or ([alike] if alike else [])
    return f"; live ones near it: {', '.join(near[:_OFFERED])}" if near else ""


def _row(fault: Fault) -> FaultRow:
    rule = every_rule()[fault.rule]
    sentences = tuple(
        f"{requirement.clause.statement} ({requirement.clause.document}, {requirement.clause.heading})"
        for requirement in load_book().requirements_of(fault.rule)
    )
    reason = _OF_CLIENTS if rule.side is Side.CLIENT else why_not_live(fault)
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


def _searched(one: FaultRow) -> str:
    return " ".join((one.id, one.rule, one.reason, *one.sentences)).casefold()
