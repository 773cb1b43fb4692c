"""One line of bytes: parsed, classified, shown."""

from typing import Any

import pytest

from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Direction, Frame, Kind, Origin, classify, json_error, parse


def frame(raw: bytes) -> Frame:
    value = parse(raw)
    return Frame(0, 0.0, "c1", Direction.FROM_TARGET, Origin.TARGET, raw, value, classify(value))


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b'{"method": "m", "id": 1, "params": {}}', Kind.REQUEST),
        (b'{"method": "m", "id": null}', Kind.REQUEST),
        (b'{"method": "m", "params": {}}', Kind.NOTIFICATION),
        (b'{"id": 1, "result": null}', Kind.RESPONSE),
        (b'{"id": 1, "result": {}, "error": {}}', Kind.RESPONSE),
        (b'{"id": null, "error": {}}', Kind.ERROR),
        (b'{"id": 1, "error": null}', Kind.ERROR),
        (b'{"id": 1, "failure": "none such"}', Kind.ERROR),
        (b'{"id": 1, "jsonrpc": "2.0"}', Kind.MALFORMED),
        (b'{"error": {}}', Kind.MALFORMED),
        (b'{"result": {}}', Kind.MALFORMED),
        (b'{"method": 5}', Kind.MALFORMED),
        (b'{"id": 1}', Kind.MALFORMED),
        (b"[1]", Kind.MALFORMED),
        (b'"text"', Kind.MALFORMED),
        (b"null", Kind.MALFORMED),
        (b"", Kind.MALFORMED),
        (b"Starting...", Kind.MALFORMED),
        (b'{"method": "\xff"}', Kind.MALFORMED),
        (b"[" * 100_000, Kind.MALFORMED),
    ],
)
def test_a_line_has_one_form(raw: bytes, kind: Kind) -> None:
    assert frame(raw).kind is kind


def test_a_line_that_is_not_json_is_missing_and_null_is_not() -> None:
    assert parse(b"{") is MISSING
    assert parse(b"\xff") is MISSING
    assert parse(b"null") is None


def test_a_failure_is_told_by_its_error_or_by_all_that_is_there() -> None:
    assert frame(b'{"id": 1, "error": {"code": 5}}').failure == {"code": 5}
    assert frame(b'{"id": 1, "reason": "full"}').failure == {"id": 1, "reason": "full"}


def test_members_are_read_without_trust() -> None:
    full = frame(b'{"method": "m", "id": 0, "params": [1], "error": null}')
    assert (full.method, full.id, full.params, full.error) == ("m", 0, [1], None)
    empty = frame(b"[]")
    assert (empty.method, empty.params) == ("", {})
    assert (empty.id, empty.result, empty.error) == (MISSING, MISSING, MISSING)


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, MISSING])
def test_looking_into_any_value_never_raises(value: Any) -> None:
    assert obj(value) == {}
    assert arr(value) == []
    assert dig(value, "a", "b") is MISSING
    assert text(value) == ("x" if value == "x" else "")


def test_missing_is_told_apart_from_null_and_is_false() -> None:
    assert dig({"a": {"b": None}}, "a", "b") is None
    assert not MISSING
    assert repr(MISSING) == "MISSING"


def test_a_long_line_is_cut_in_the_middle_for_reading() -> None:
    shown = frame(b'"' + b"a" * 50 + b"z" * 50 + b'"').text(limit=90)
    assert shown == '"' + "a" * 50 + "z" * 9 + " …12 more… " + "z" * 29 + '"'


def test_of_a_huge_line_only_the_ends_are_looked_at() -> None:
    shown = frame(b"a" * 5_000_000 + b"z" * 5_000_000).text(limit=90)
    assert shown == "a" * 90 + " …9999820 bytes more… " + "z" * 90


def test_control_characters_are_shown_escaped() -> None:
    assert frame(b"a\x1b[31m\n\xe2\x80\xa8b").text() == "a\\x1b[31m\\n\\u2028b"


def test_bytes_that_are_no_text_are_shown_escaped() -> None:
    assert frame(b"a\xffb").text() == "a\\xffb"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"a": 1}', ""),
        (b'{"a": "\xff\xc3("}', "no UTF-8 from byte 8 on (ff)"),
        (b'"\xe2\x82"', "no UTF-8 from byte 2 on (e2 82)"),
        (b"Loading model", "Expecting value at character 1"),
        (b'{"a": 1} {', "Extra data at character 10"),
        (b"", "Expecting value at character 1"),
        (b"[" * 100_000, "nested too deep, or a number too long, to be read"),
        (b"1" * 5_000, "nested too deep, or a number too long, to be read"),
    ],
)
def test_why_a_line_is_no_json_is_said_with_the_place(raw: bytes, why: str) -> None:
    assert json_error(raw) == why
    assert (parse(raw) is MISSING) == bool(why)
