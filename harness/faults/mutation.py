"""Mutation testing of the rules: a trace is judged again with each fault in it."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from harness.faults.base import Fault
from harness.faults.stored import apply_each
from harness.judge.judge import judge
from harness.judge.rows import CRASH_SUBJECT
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Row, Verdict
from harness.protocol.spec.book import Book
from harness.trace.trace import Trace


class Outcome(StrEnum):
    """The outcome of a fault; SURVIVED means that its rule missed it.

    MASKED: the rule is broken without the fault too, so that nothing can be concluded.
    """

    KILLED = "KILLED"
    SURVIVED = "SURVIVED"
    MASKED = "MASKED"
    NOT_APPLIED = "NOT_APPLIED"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fault on one trace. `noticing_rules` have more violations than without the fault."""

    fault_id: str
    rule: str
    outcome: Outcome
    noticing_rules: tuple[str, ...] = ()


def mutate(
    book: Book,
    trace: Trace,
    faults: Iterable[Fault],
    deviations: Collection[str] = (),
    *,
    only_own: bool = False,
) -> list[Mutation]:
    """Return the outcome of each fault: the trace with it is compared with the trace without it.

    `deviations` are the rules that the target is known to break. MASKED: the fault's rule is one of
    them, or was broken before the fault and has no new violation. With `only_own` only the fault's
    rule judges: the outcome is the same, in a fraction of the time.
    """
    rules = all_rules()
    fault_list = list(faults)
    applied = apply_each(fault_list, trace)
    if only_own:
        rules = {fault.rule: rules[fault.rule] for fault in fault_list if fault.id in applied}
    before = _violations(judge(book, trace, rules.values()))

    mutations: list[Mutation] = []
    for fault in fault_list:
        broken = applied.get(fault.id)
        if broken is None:
            mutations.append(Mutation(fault.id, fault.rule, Outcome.NOT_APPLIED))
            continue
        judging = (rules[fault.rule],) if only_own else rules.values()
        after = _violations(judge(book, broken, judging))
        mutations.append(_mutation(fault, after, before, deviations))
    return mutations


def _mutation(
    fault: Fault, after: Counter[str], before: Counter[str], deviations: Collection[str]
) -> Mutation:
    """Return the result of a fault, by the violations of each rule with it and without."""
    fired = tuple(sorted(after - before))
    if fault.rule in deviations:
        outcome = Outcome.MASKED
    elif fault.rule in fired:
        outcome = Outcome.KILLED
    elif before[fault.rule]:
        outcome = Outcome.MASKED
    else:
        outcome = Outcome.SURVIVED
    return Mutation(fault.id, fault.rule, outcome, fired)


def _violations(rows: Iterable[Row]) -> Counter[str]:
    """Return each rule's number of violations; subjects do not count, as faults may rename them."""
    return Counter(
        row.rule
        for row in rows
        if row.verdict in (Verdict.FAIL, Verdict.ERROR) and row.subject != CRASH_SUBJECT
    )
