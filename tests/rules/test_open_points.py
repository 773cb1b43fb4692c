"""No rule fails another choice at an open point: a server with another choice for each point.

The head of `harness/protocol/spec/unspecified.yaml` promises it; here it is tried, row by row.
"""

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.loading import load_book
from tests.rules.open_point import Otherwise, otherwise, untried

BOOK = load_book()
POINTS = {point.id: point for point in BOOK.unspecified}
OTHERWISE, UNTRIED = otherwise(), untried()


def test_each_point_is_tried_or_says_why_it_cannot_be() -> None:
    tried = {one.point for one in OTHERWISE}
    excused = [one.point for one in UNTRIED]
    assert len(set(excused)) == len(excused)
    assert not tried & set(excused)
    assert set(POINTS) - tried - set(excused) == set()


@pytest.mark.parametrize("one", OTHERWISE, ids=[f"{one.point}:{one.does}" for one in OTHERWISE])
def test_a_server_that_chose_otherwise_is_not_failed(one: Otherwise) -> None:
    rows = judge(BOOK, one.trace(), all_rules().values())
    wrong = [row for row in rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    told = [f"{row.rule} {row.level} {row.subject}: {row.actual}" for row in wrong]
    assert [
        line for line, row in zip(told, wrong, strict=True) if row.level is not Level.INFO
    ] == []


def test_reasons_of_untried_points_are_sentences() -> None:
    assert [one.point for one in UNTRIED if len(one.because.split()) < 6] == []
