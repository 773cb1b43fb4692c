"""Names of skills in a text."""

import pytest

from reference_server.skills.invoking import MAX_DOLLAR_SIGNS, names_in

NAMES = ["tally", "tally-up", "Spell Check", "Spell", "v1.2", "größe", "$odd", "-x"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("$tally", ["tally"]),
        ("use $tally, $tally. ($tally) $tally's", ["tally"]),
        ("$tally-up", ["tally-up"]),
        ("$tally-", []),
        ("$tally_up", []),
        ("$tally2", []),
        ("$TALLY", []),
        ("$$tally", []),
        ("\\$tally", []),
        ("US$tally", []),
        ("$ tally", []),
        ("tally", []),
        ("$Spell Check this", ["Spell Check"]),
        ("$Spell it", ["Spell"]),
        ("$Spell Checks", ["Spell"]),
        ("$v1.2.", ["v1.2"]),
        ("$v1.23", []),
        ("$größe", ["größe"]),
        ("$größer", []),
        ("$tally\n$Spell", ["tally", "Spell"]),
        ("`$tally`", ["tally"]),
        ("$tally/$Spell:$v1.2", ["tally", "Spell", "v1.2"]),
        ("", []),
    ],
)
def test_which_names_a_text_holds(words: str, found: list[str]) -> None:
    assert names_in([words], NAMES) == found


def test_names_come_in_the_order_in_which_texts_name_them() -> None:
    assert names_in(["$v1.2 $tally", "$Spell $tally"], NAMES) == ["v1.2", "tally", "Spell"]


def test_only_so_many_signs_of_a_text_are_looked_at() -> None:
    assert names_in(["$x " * MAX_DOLLAR_SIGNS + "$tally"], NAMES) == []
