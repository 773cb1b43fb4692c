"""Suggestions for an unknown name: similar names, else a few names or the command for all."""

import pytest

from harness.trace.nearest import MAX_NAMES_LISTED, similar_names, unknown_name

RULES = ("turn.completes", "turn.completed-once", "item.completes", "list.complete")
SCENARIOS = ("plans", "turns/plain-turn", "turns/usage", "sdk/plain-turn", "explain/it")


@pytest.mark.parametrize(
    ("name", "valid", "meant"),
    [
        ("turn.complets", RULES, ["turn.completes"]),
        ("TURN.COMPLETES", RULES, ["turn.completes"]),
        ("completes", RULES, ["item.completes", "turn.completes"]),
        ("plain", SCENARIOS, ["sdk/plain-turn", "turns/plain-turn"]),
        ("usage", SCENARIOS, ["turns/usage"]),
        ("us", ("usage/a", "b/us-c"), []),
        ("echo", SCENARIOS, []),
        (".", RULES, []),
    ],
)
def test_near_names_are_proposed(name: str, valid: tuple[str, ...], meant: list[str]) -> None:
    assert similar_names(name, (*valid, *valid)) == meant


def test_three_are_offered_at_most_and_the_likest_first() -> None:
    names = [f"turn-ends-{'x' * length}" for length in range(9, 30)]
    assert similar_names("turn-ends", names) == names[:3]


def test_the_command_that_lists_the_names_stands_in_the_place_of_far_off_ones() -> None:
    names = [f"name-{number}" for number in range(MAX_NAMES_LISTED + 1)]
    told = unknown_name("fault", "zzz", names, listed="harness faulty --list")
    assert told == "unknown fault 'zzz'; none of the 41 is like it (harness faulty --list)"
    near = unknown_name("fault", "nam-4", names, listed="harness faulty --list")
    assert near == "unknown fault 'nam-4'; did you mean 'name-4'? (harness faulty --list)"


def test_few_names_are_all_told_where_none_is_near() -> None:
    assert unknown_name("key", "zzz", ("b", "a")) == "unknown key 'zzz'; expected one of: a, b"
