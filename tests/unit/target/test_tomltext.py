"""TOML with places: every key and value of a document has its own, however it is written."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from harness.client.target.profile import builtin_names
from harness.client.target.tomltext import Loc, dotted_key, read_toml, steps_of
from harness.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = '''\
# a comment with = and [brackets]
name = "mine" # and one after a value
a.b . "c d" = [1, [2, "x]"], { y = 1979-05-27 07:32:00, z.w = 'its' }, # within
  """multi " [line]
"""  , ]
text = """
[not.a.header]
key = 1
"""""
'quoted "key"' = \'\'\'raw \\ ''\'\'\'

[table."x.y"]
k = true
[[rows]]
rule = 'one'
[rows.more]
deep = 1
[[rows]]   # a second
  rule = "\\"two"
[[rows.inner]]
n = -1.5e3
[[rows.inner]]
n = inf
'''
PLACES: dict[Loc, tuple[int, int]] = {
    ("name",): (2, 1),
    ("a",): (3, 1),
    ("a", "b", "c d"): (3, 7),
    ("a", "b", "c d", 2, "z", "w"): (3, 59),
    ("text",): (6, 1),
    ('quoted "key"',): (10, 1),
    ("table", "x.y", "k"): (13, 1),
    ("rows", 0, "rule"): (15, 1),
    ("rows", 0, "more", "deep"): (17, 1),
    ("rows", 1, "rule"): (19, 3),
    ("rows", 1, "inner", 1, "n"): (23, 1),
}


def paths(value: Any, loc: Loc = ()) -> Iterator[Loc]:
    if loc:
        yield loc
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*loc, key))
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*loc, index))


def assert_every_part_has_its_place(text: str) -> None:
    toml = read_toml(text, "here")
    assert toml.value == tomllib.loads(text)
    assert set(toml.values) == set(paths(toml.value))
    assert set(toml.keys) == {loc for loc in toml.values if isinstance(loc[-1], str)}
    lines = text.replace("\r\n", "\n").split("\n")
    for loc, where in toml.keys.items():
        there = lines[where.line - 1][where.column - 1 :]
        assert there.startswith((str(loc[-1]), "'", '"')), f"{loc} stands at {where}: {there}"


@pytest.mark.parametrize("loc", PLACES)
def test_a_key_is_found_where_it_stands(loc: Loc) -> None:
    where = read_toml(SAMPLE, "here").place(loc, key=True)
    assert (where.line, where.column) == PLACES[loc]


def test_every_part_of_a_text_in_all_the_ways_of_toml_has_its_place() -> None:
    assert_every_part_has_its_place(SAMPLE)
    assert_every_part_has_its_place(SAMPLE.replace("\n", "\r\n"))


@pytest.mark.parametrize("name", {name.partition("-")[0] for name in builtin_names()})
def test_every_part_of_a_built_in_profile_has_its_place(name: str) -> None:
    path = ROOT / f"harness/client/target/profiles/{name}.toml"
    assert_every_part_has_its_place(path.read_text("utf-8"))


_KEYS = st.text(min_size=1, max_size=6)
_VALUES = st.recursive(
    st.integers(-99, 99) | st.booleans() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=5))
def test_every_part_of_any_document_has_its_place(document: dict[str, Any]) -> None:
    text = tomlkit.dumps(document)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # A control character, which the writer does not escape.
    toml = read_toml(text, "here")
    assert set(toml.values) == set(paths(toml.value))


def test_a_place_that_is_not_in_the_file_is_that_of_what_holds_it() -> None:
    toml = read_toml('name = "x"\n[bounds]\nstep = 1\n', "here")
    assert str(toml.place(("bounds", "stop"))) == "here:2:1"
    assert str(toml.place(("bounds", "step"))) == "here:3:8"
    assert str(toml.place(("nothing",))) == "here:1:1"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name =", "here:1:7: not TOML: Invalid value"),
        ('a = 1\nb = "x\n', "here:2:7: not TOML: Illegal character '\\n'"),
        ('a = "x"\na = "y"\n', "here:2:8: not TOML: Cannot overwrite a value"),
        ('a = """\n\n', "here:3:1: not TOML: Unterminated string"),
        ("a = " + "[" * 5000 + "]" * 5000, "here:1:1: not TOML that can be read: nested too deep"),
    ],
)
def test_invalid_toml_is_refused_at_its_place(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_toml(text, "here")
    assert str(caught.value) == complaint


def test_a_dotted_key_is_read_and_written_as_toml_does() -> None:
    steps = ("home", "config.toml", "model")
    assert steps_of('home."config.toml".model') == steps
    assert dotted_key(steps) == 'home."config.toml".model'
    with pytest.raises(ValueError, match="is no key of TOML"):
        steps_of("a..b")
