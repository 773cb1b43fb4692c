"""Levels of requirements: some rule has the same level, or the lighter row gives a reason."""

import pytest

from harness.judge.rules.discovery import every_rule
from harness.judge.verdict import Level
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import make_requirement
from harness.protocol.spec.yamlfile import BookError

WEIGHT = {Level.INFO: 0, Level.SHOULD: 1, Level.MUST: 2}
JUDGED = [row for row in load_book().requirements if row.rules]
# Rows that were said to be beyond any rule, and are judged.
ONCE_EXCLUDED = (
    "service.conversation",
    "rpc.request-direction",
    "thread.model-provider-used",
    "item.command-process",
)
# A row of requirements/*.yaml that is right.
ROW = {
    "id": "shelf.order",
    "document": "shelves",
    "heading": "Order",
    "line": 3,
    "bound": "server",
    "basis": "STATED",
    "level": "SHOULD",
    "lighter": "usually, by its own word",
    "statement": "Shelves are sorted.",
    "rules": ["shelf.sorted"],
}


def test_a_row_has_a_rule_that_weighs_as_much() -> None:
    rules = every_rule()
    too_light = {
        row.id: row.rules
        for row in JUDGED
        if max(WEIGHT[rules[name].level] for name in row.rules) < WEIGHT[Level(row.clause.level)]
    }
    assert too_light == {}
    assert len(JUDGED) > 500


def test_stated_requirements_with_a_lower_level_say_why() -> None:
    for row in load_book().requirements:
        noted = (row.clause.basis, row.clause.level) == ("STATED", "SHOULD")
        assert (row.lighter is not None) is noted, row.id
        if row.lighter is not None:
            assert len(row.lighter.split()) >= 3, f"{row.id} names the words of the text"


def test_a_row_that_is_lighter_for_no_reason_is_refused() -> None:
    assert make_requirement("here", ROW).lighter == "usually, by its own word"
    without = {key: value for key, value in ROW.items() if key != "lighter"}
    for row in (without, {**ROW, "level": "MUST"}, {**ROW, "basis": "CHOSEN", "level": "INFO"}):
        with pytest.raises(BookError, match="says in lighter why"):
            make_requirement("here", row)


@pytest.mark.parametrize("row_id", ONCE_EXCLUDED)
def test_a_row_that_was_beyond_any_rule_is_judged(row_id: str) -> None:
    row = load_book().requirement(row_id)
    assert row.excluded is None
    assert row.rules
