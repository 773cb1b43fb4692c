"""Lines that orjson reads or writes otherwise than the standard library."""

import json

import pytest

from reference_server.dialect.lines import decode_foreign, decode_own, encode_own

DEEP = b"[" * 300 + b"]" * 300
VERY_DEEP = b"[" * 1010 + b"]" * 1010
"""Deeper than the standard library reads, but not than orjson does."""


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":1,"params":{"text":"caf\xc3\xa9"}}',
        b'{"id":123456789012345678901}',
        b'["12345678901234567890", -9223372036854775809]',
        b'{"a":[NaN,-Infinity,1e999]}',
        b'["\\ud800"]',
        b"\xef\xbb\xbf[1]",
        '["é"]'.encode("utf-16"),
        DEEP,
    ],
)
def test_a_line_of_a_client_keeps_its_value(line: bytes) -> None:
    value, encode = decode_foreign(line)
    assert repr(value) == repr(json.loads(line))
    assert repr(json.loads(encode(value))) == repr(value)


@pytest.mark.parametrize("line", [b"", b"{", b"[01]", b'["\xff"]', b'["\t"]'])
def test_a_line_that_is_not_json_is_refused(line: bytes) -> None:
    with pytest.raises((json.JSONDecodeError, UnicodeDecodeError)):
        decode_foreign(line)


def test_a_line_that_is_too_deep_is_refused() -> None:
    with pytest.raises(RecursionError):
        decode_foreign(VERY_DEEP)


def test_messages_of_the_server_keep_their_numbers_and_letters() -> None:
    long_number = '{"params":{"n":123456789012345678901,"text":"é"}}'.encode()
    lines = [b'{"id":1}', long_number, b'{"n":1.5}']
    assert encode_own(decode_own(lines)) == lines
