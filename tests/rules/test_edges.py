"""Legal conversations that no rule may fail, and illegal ones that a rule must find.

Each stands for one line that a reader of the text could doubt; wherever one was found, there are at
least two of them, so that no rule knows one trace by heart.
"""

from collections import Counter

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.trace import Trace
from tests.rules.edge import Illegal, Legal, illegal, legal

LEGAL = legal()
ILLEGAL = illegal()


def wrong(trace: Trace) -> list[Row]:
    rows = judge(load_book(), trace, all_rules().values())
    return [row for row in rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]


def said(rows: list[Row]) -> list[str]:
    return [f"{row.rule} {row.level} {row.subject}: {row.actual}" for row in rows]


@pytest.mark.parametrize("edge", LEGAL, ids=[f"{one.rule}:{one.name}" for one in LEGAL])
def test_a_legal_conversation_is_failed_by_no_rule_that_binds(edge: Legal) -> None:
    rows = wrong(edge.trace())
    assert said([row for row in rows if row.level is Level.MUST]) == []
    assert {row.rule for row in rows if row.level is Level.SHOULD} <= edge.hints
    assert edge.hints <= {row.rule for row in rows}


@pytest.mark.parametrize("edge", ILLEGAL, ids=[f"{one.rule}:{one.name}" for one in ILLEGAL])
def test_an_illegal_conversation_is_found(edge: Illegal) -> None:
    rows = wrong(edge.trace())
    assert edge.level in {row.level for row in rows if row.rule == edge.rule}, said(rows)
    assert {row.rule for row in rows if row.level is not Level.INFO} - {edge.rule} == edge.also


def test_each_edge_has_a_second_conversation() -> None:
    for edges in (LEGAL, ILLEGAL):
        count = Counter(one.rule for one in edges)
        alone = sorted(rule for rule, times in count.items() if times < 2)
        assert not alone, f"write a second, different conversation in edges_*.py for {alone}"
