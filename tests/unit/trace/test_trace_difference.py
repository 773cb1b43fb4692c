"""The first difference of two values: both sides shown, and never with the same text."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.protocol.values import MISSING, read_path, show_path, value_at
from harness.trace.difference import MAX_SHOWN_CHARACTERS, difference, literal

# Letters that repeat, quotes, escapes, control characters, lone surrogates, signs beyond 16 bits.
TEXTS = st.text(
    st.sampled_from('aaab"\\\n\x00\x7f\u200b\u202e\ud800\udc00é😀\U000e0001'), max_size=400
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def _plain(value: Any) -> str:
    """Values as JSON tells them apart: 1 is not true, NaN is itself."""
    if isinstance(value, dict):
        return f"{{{sorted((key, _plain(one)) for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{[_plain(one) for one in value]}]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{type(value).__name__ if isinstance(value, bool | str) else ''} {value!r}"


@given(VALUES, VALUES)
def test_two_values_that_differ_are_never_told_the_same(one: Any, other: Any) -> None:
    assume(_plain(one) != _plain(other))
    told = difference(one, other)
    assert told.expected != told.actual


@given(VALUES, VALUES)
def test_a_difference_is_bounded_and_can_be_printed(one: Any, other: Any) -> None:
    told = difference(one, other)
    for text in (told.expected, told.actual):
        assert len(text) <= MAX_SHOWN_CHARACTERS + 120
        assert text.isprintable()


@given(TEXTS, TEXTS)
def test_the_offset_is_that_of_the_first_character_that_differs(one: str, other: str) -> None:
    assume(one != other)
    offset = difference(one, other).offset
    assert offset is not None
    assert one[:offset] == other[:offset]
    assert one[offset : offset + 1] != other[offset : offset + 1]


@given(VALUES, VALUES)
def test_the_path_leads_to_what_differs(one: Any, other: Any) -> None:
    assume(_plain(one) != _plain(other))
    path = difference(one, other).path
    assert _plain(value_at(one, path)) != _plain(value_at(other, path))
    if path:
        assert _plain(value_at(one, path[:-1])) != _plain(value_at(other, path[:-1]))


@given(st.lists(st.text(min_size=1) | st.integers(0, 99)))
def test_a_path_that_is_shown_can_be_read_back(path: list[str | int]) -> None:
    assert read_path(show_path(tuple(path))) == tuple(path)


def test_a_difference_deep_in_a_value_is_told_at_its_path() -> None:
    one = {"turn": {"items": [{"text": "Hello"}, {"text": "there"}]}}
    other = {"turn": {"items": [{"text": "Hello"}, {"text": "here"}]}}
    expected, actual = difference(one, other).describe("params")
    assert expected == 'params.turn.items[1].text: "there"'
    assert actual == ('params.turn.items[1].text: "here"')


def test_a_long_text_is_shown_around_its_first_difference() -> None:
    long = "word " * 200
    told = difference(long, long[:700] + "X" + long[701:])
    assert told.offset == 700
    assert "word Xord" in told.actual
    assert told.actual.endswith("(1000 characters; first difference at character 700)")
    assert told.actual.startswith("…67")


@pytest.mark.parametrize(
    ("one", "other", "expected", "actual"),
    [
        (["a"], [], '[0]: "a"', "[0]: nothing"),
        ({"a": 1}, {"a": True}, "a: 1", "a: true"),
        ({}, {"turnId": None}, "turnId: nothing", "turnId: null"),
        ({}, [], "{}", "[]"),
        (None, "x", "null", '"x"'),
    ],
)
def test_values_of_other_kinds_are_told_as_json(
    one: Any, other: Any, expected: str, actual: str
) -> None:
    assert difference(one, other).describe() == (expected, actual)


def test_values_that_can_only_be_told_apart_far_behind_are_shown_there() -> None:
    told = difference(list(range(100)), {"x": list(range(100))})
    assert told.expected != told.actual
    nested: Any = 1
    for _ in range(5000):
        nested = [nested]
    assert difference(nested, [nested]).expected


def test_a_literal_says_how_much_of_it_is_left_out() -> None:
    assert literal("x" * 500) == '"' + "x" * (MAX_SHOWN_CHARACTERS - 2) + '"…382 more…'
    assert literal(list(range(500))).endswith("… (500 elements in all)")
    assert literal(MISSING) == "nothing"
    assert literal("a\x1b[31m\ud800") == '"a\\u001b[31m\\ud800"'
