"""A wire line is cut around the member that matters, and stays bounded."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.protocol.values import Path, value_at
from harness.trace.excerpt import Spot, excerpt, locate

LIMIT = 240
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def paths(value: Any, above: Path = ()) -> list[Path]:
    """The path of every part of a value."""
    found = [above]
    if isinstance(value, dict):
        found += [one for key, part in value.items() for one in paths(part, (*above, key))]
    if isinstance(value, list):
        found += [one for index, part in enumerate(value) for one in paths(part, (*above, index))]
    return found


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_every_part_of_a_message_is_found_in_its_line(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    for path in paths(value):
        span = locate(line, path)
        assert span is not None
        assert span.whole
        assert json.loads(line[span.start : span.end]) == value_at(value, path)


@given(VALUES, st.text(max_size=400), st.integers(0, 400))
def test_an_excerpt_is_bounded_whatever_the_line(value: Any, text: str, offset: int) -> None:
    line = json.dumps({"before": value, "text": text, "after": [value] * 30})
    shown = excerpt(line, [Spot(("text",), offset)], LIMIT)
    assert len(shown) <= 2 * LIMIT
    assert shown.isprintable()
    if len(line) > LIMIT:
        assert '"text": ' in shown


def test_a_member_far_inside_a_line_is_shown_with_its_value() -> None:
    items = [{"id": f"item-{number}", "status": "completed"} for number in range(200)]
    items[120]["status"] = "inProgress"
    line = json.dumps({"method": "turn/completed", "params": {"turn": {"items": items}}})
    shown = excerpt(line, [Spot(("params", "turn", "items", 120, "status"))], LIMIT)
    assert shown.startswith('{"method": "turn/completed"')
    assert '"item-120", "status": "inProgress"' in shown
    assert " more… " in shown
    assert len(shown) < LIMIT + 40


def test_a_long_text_is_shown_around_the_offset_with_its_key() -> None:
    text = "\\\u00e9😀\n" * 300 + "HERE" + "z" * 900
    for ascii_only in (True, False):
        line = json.dumps({"params": {"delta": text}}, ensure_ascii=ascii_only)
        shown = excerpt(line, [Spot(("params", "delta"), 1200)], LIMIT)
        assert '"delta": "' in shown
        assert "HEREzzz" in shown


def test_a_missing_member_is_shown_by_its_parent() -> None:
    line = json.dumps({"params": {"x": "y" * 300, "turn": {"id": "turn_1"}, "z": "y" * 300}})
    shown = excerpt(line, [Spot(("params", "turn", "status"))], LIMIT)
    assert '"turn": {"id": "turn_1"}' in shown


def test_of_a_key_given_twice_the_last_is_shown() -> None:
    span = locate('{"a": 1, "a": 2}', ("a",))
    assert span is not None
    assert span.start == 14


def test_a_line_without_a_spot_or_without_json_is_cut_in_the_middle() -> None:
    line = "a" * 500 + "z" * 500
    for spots in ([], [Spot(("params",))]):
        shown = excerpt(line, spots, 90)
        assert shown == "a" * 60 + " …910 more… " + "z" * 30
