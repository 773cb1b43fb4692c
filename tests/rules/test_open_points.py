"""Nothing that the text leaves open is ever failed: servers that chose otherwise, point by point.

The head of `harness/spec/unspecified.yaml` promises it; here it is tried, row by row.
"""

import pytest

from harness.judge.judge import judge
from harness.judge.verdict import Level, Verdict
from harness.rules.discovery import all_rules
from harness.spec.loading import load_book
from tests.rules.open_point import Otherwise, Why, otherwise, untried

BOOK = load_book()
POINTS = {point.id: point for point in BOOK.unspecified}
OTHERWISE, UNTRIED = otherwise(), untried()
COMMANDS = "mcp-cli-and-sdk"
# Those of agent mcp, which is judged.
MCP = {one for one in POINTS if one.startswith("mcp-")}


def test_each_point_is_tried_or_says_why_it_cannot_be() -> None:
    tried = {one.point for one in OTHERWISE}
    excused = [one.point for one in UNTRIED]
    commands = {one for one, point in POINTS.items() if point.document == COMMANDS} - MCP
    assert len(set(excused)) == len(excused)
    assert not tried & set(excused)
    assert tried | set(excused) | commands == set(POINTS)
    assert not commands & (tried | set(excused))


def test_no_rule_judges_exec_and_the_sdk_yet() -> None:
    """Their points need conversations as soon as one does."""
    judged = [one.id for one in BOOK.requirements if one.rules and one.id.startswith("sdk-")]
    assert judged == [], Why.NO_RULE


@pytest.mark.parametrize("one", OTHERWISE, ids=[f"{one.point}:{one.does}" for one in OTHERWISE])
def test_a_server_that_chose_otherwise_is_not_failed(one: Otherwise) -> None:
    rows = judge(BOOK, one.trace(), all_rules().values())
    wrong = [row for row in rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    told = [f"{row.rule} {row.level} {row.subject}: {row.actual}" for row in wrong]
    assert [
        line for line, row in zip(told, wrong, strict=True) if row.level is not Level.INFO
    ] == []


def test_what_is_not_tried_says_more_than_a_word() -> None:
    assert [one.point for one in UNTRIED if len(one.because.split()) < 6] == []
