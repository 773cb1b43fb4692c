"""The id of a race: formatting and parsing."""

import re
from pathlib import Path

import pytest

import harness
from harness.scenario.race_id import RaceId


@pytest.mark.parametrize(
    ("text", "race"),
    [
        ("turns/plain-turn", RaceId("turns/plain-turn")),
        ("turns/plain-turn@kill", RaceId("turns/plain-turn", "kill")),
        (
            "turns/plain-turn@interrupt@item:1:started",
            RaceId("turns/plain-turn", "interrupt", "item:1:started"),
        ),
        ("turns/*@*@delta:*", RaceId("turns/*", "*", "delta:*")),
    ],
)
def test_id_is_read_as_it_is_printed(text: str, race: RaceId) -> None:
    assert RaceId.parse(text) == race
    assert str(race) == text


@pytest.mark.parametrize(
    ("name", "race"),
    [
        ("kill", RaceId("", "kill")),
        ("interrupt@item:1:started", RaceId("", "interrupt", "item:1:started")),
    ],
)
def test_name_is_an_id_without_its_scenario(name: str, race: RaceId) -> None:
    assert RaceId.parse_name(name) == race
    assert race.name == str(race) == name
    assert RaceId.parse_name(name, "a/b") == RaceId.parse(f"a/b@{name}")


def test_unfinished_id_names_what_stands_before_the_separator() -> None:
    assert RaceId.parse("a/b@") == RaceId("a/b")
    assert RaceId.parse("a/b@kill@") == RaceId("a/b", "kill")


def test_nothing_else_takes_an_id_apart() -> None:
    taken_apart = re.compile(r"""(?:partition|split)\(["']@["']""")
    files = Path(harness.__file__).parent.rglob("*.py")
    assert [file.name for file in files if taken_apart.search(file.read_text())] == []
