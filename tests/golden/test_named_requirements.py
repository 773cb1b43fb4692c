"""Each finding shows the requirement that it breaks, in all small conversations of the tests."""

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.story import MAX_REQUIREMENTS_SHOWN
from tests.golden.conversations import conversations

BOOK = load_book()


def unnamed(row: Row) -> bool:
    """Return True if a finding does not show which requirement of its rule is broken."""
    of_rule = {requirement.id for requirement in BOOK.requirements_of(row.rule)}
    named = set(row.clauses) if row.clauses else of_rule
    # Without clauses a report shows those of the rule, but no more than these.
    return not named <= of_rule or not 0 < len(named) <= MAX_REQUIREMENTS_SHOWN


@pytest.mark.slow
def test_each_finding_shows_the_requirement_that_it_breaks() -> None:
    rules = all_rules().values()
    rows = (
        (name, row)
        for name, trace in conversations()
        for row in judge(BOOK, trace, rules)
        if row.verdict is Verdict.FAIL
    )
    gaps = {row.rule: f"{row.rule} {row.clauses} in {name}" for name, row in rows if unnamed(row)}
    assert not gaps, "\n".join(gaps.values())
