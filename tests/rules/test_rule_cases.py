"""Each rule on three small traces: right, wrong, and one that gives it nothing to judge."""

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.trace import Trace
from tests.rules.case import Case, Found, all_cases

CASES = list(all_cases())

by_rule = pytest.mark.parametrize("case", CASES, ids=[case.rule for case in CASES])


def rows_of(rule: str, trace: Trace) -> list[Row]:
    return judge(load_book(), trace, rules=[all_rules()[rule]])


def test_every_rule_has_its_three_traces_once() -> None:
    assert sorted(case.rule for case in CASES) == list(all_rules())


@by_rule
def test_a_rule_passes_its_good_trace_with_a_witness(case: Case) -> None:
    rows = rows_of(case.rule, case.traces()[0])
    assert {row.verdict for row in rows} == {Verdict.PASS}
    assert {row.subject for row in rows} >= set(case.witnesses)
    assert all(row.frames for row in rows)


@by_rule
def test_a_rule_fails_its_bad_trace_at_the_right_frames(case: Case) -> None:
    rows = [row for row in rows_of(case.rule, case.traces()[1]) if row.verdict is not Verdict.PASS]
    assert [Found(row.subject, row.frames, row.level) for row in rows] == list(case.found)
    wrong = Verdict.ERROR if case.rule.startswith("harness.") else Verdict.FAIL
    assert {row.verdict for row in rows} == {wrong}
    assert all(row.expected and row.actual for row in rows)
    served = {requirement.id for requirement in load_book().requirements_of(case.rule)}
    assert all(set(row.clauses) <= served for row in rows)


@by_rule
def test_a_rule_says_nothing_of_what_it_cannot_judge(case: Case) -> None:
    assert rows_of(case.rule, case.traces()[2]) == []
