"""Every rule is killed by a fault, and exactly the reviewed rules fire for each fault."""

import pytest

from harness.faults.base import all_faults
from harness.faults.mutation import Outcome
from harness.faults.stored import apply_each
from harness.judge.judge import judge
from harness.judge.rows import CRASH_SUBJECT
from harness.judge.rules.discovery import all_rules
from harness.protocol.spec.loading import load_book
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from harness.trace.surfaces import EXEC, SESSION
from tests.rules.good_traces import GOOD as BUILDERS
from tests.sampling import one_in
from tools.matrix import GOOD, mutations, read_table, table


def test_each_fault_is_killed_by_its_rule_and_noticed_by_the_reviewed_rules() -> None:
    # One test: judging all faults takes long, and each worker with a test of them would do it.
    found = mutations()
    killed = {m.rule for m in found.values() if m.outcome is Outcome.KILLED}
    assert killed == set(all_rules())
    assert {m.fault_id for m in found.values() if m.outcome is not Outcome.KILLED} == set()
    assert table(found) == read_table(), "python -m tools.matrix writes it anew; read the diff"


@pytest.mark.parametrize("name", one_in(4, BUILDERS, pytest.mark.bugs))
def test_a_fault_fits_any_trace_or_says_that_it_does_not(name: str) -> None:
    """No fault breaks on a trace that it was not written for, and none breaks a rule."""

    trace = load(GOOD / f"{name}.jsonl", classify_of=classify_of)
    book, rules = load_book(), all_rules().values()
    applied = apply_each(all_faults().values(), trace)
    for broken in applied.values():
        assert [frame.seq for frame in broken.frames] == list(range(len(broken.frames)))
    # A fault is judged on a quarter of the traces that it fits, another quarter than the next one.
    quarter = list(BUILDERS).index(name) % 4
    for name_of_fault, broken in list(applied.items())[quarter::4]:
        rows = judge(book, broken, rules)
        assert [row for row in rows if row.subject == CRASH_SUBJECT] == [], name_of_fault
    assert len(applied) > {SESSION: 20, EXEC: 10}.get(trace.header.surface, 0)
