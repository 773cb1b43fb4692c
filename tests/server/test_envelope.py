"""Parsing of lines into requests, and the errors for all other lines."""

import json

import pytest

from harness.protocol.wire.rpc import Empty, ErrorCode
from reference_server.envelope import (
    ID_LIMIT,
    IncomingAnswer,
    IncomingNotification,
    IncomingRequest,
    Malformed,
    StrayAnswer,
    decode,
    encode_error,
    encode_result,
)


@pytest.mark.parametrize("request_id", [0, -1, 7, 1.5, "", "a", "é", 10**30])
def test_numbers_and_strings_are_ids_and_are_echoed_as_they_are(request_id) -> None:
    line = json.dumps({"id": request_id, "method": "m", "params": {}}).encode()
    request = decode(line)
    assert request == IncomingRequest(request_id, "m", {})
    assert isinstance(request, IncomingRequest)
    answer = json.loads(encode_result(request.id, Empty()))
    assert answer == {"id": request_id, "result": {}}
    assert type(answer["id"]) is type(request_id)


def test_the_jsonrpc_member_is_accepted_and_not_written() -> None:
    assert decode(b'{"jsonrpc":"2.0","id":1,"method":"m"}') == IncomingRequest(1, "m", {})
    assert "jsonrpc" not in json.loads(encode_error(1, ErrorCode.INTERNAL_ERROR, "x"))


def test_without_an_id_it_is_a_notification() -> None:
    assert decode(b'{"method":"initialized"}') == IncomingNotification("initialized", {})


@pytest.mark.parametrize("member", ["result", "error"])
def test_an_answer_is_told_from_a_request(member: str) -> None:
    envelope = decode(json.dumps({"id": 3, member: {}}).encode())
    assert isinstance(envelope, IncomingAnswer)
    assert envelope.id == 3


@pytest.mark.parametrize("body", [{"result": {}}, {"error": {"code": 1, "message": "no"}}])
@pytest.mark.parametrize(
    "identifier", [{}, {"id": None}, {"id": []}, {"id": True}, {"id": "x" * (ID_LIMIT + 1)}]
)
def test_an_answer_without_the_id_of_a_request_is_not_malformed(body, identifier) -> None:
    envelope = decode(json.dumps({**identifier, **body}).encode())
    assert isinstance(envelope, StrayAnswer)
    assert len(envelope.words) < 200


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b'{"id":1',
        b'{"id":1,"method":"m","params":NaN}',
        b'{"id":Infinity,"method":"m"}',
        b"\xff\xfe",
        b'{"id":1,"method":"m","params":{"x":"\xc3"}}',
        b'{"id":1,"method":"\\ud800"}',
        b"[" * 100_000,
        b'{"id":1,"method":"m","params":' + b"9" * 10_000 + b"}",
        b"\xef\xbb\xbf{}",
    ],
)
def test_a_line_that_is_not_json_is_a_parse_error(line: bytes) -> None:
    envelope = decode(line)
    assert isinstance(envelope, Malformed)
    assert envelope.code == ErrorCode.PARSE_ERROR
    assert len(envelope.message) < 200


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[]", "an array"),
        (b'[{"id":1,"method":"m"}]', "an array"),
        (b"null", "null"),
        (b'"text"', "a string"),
        (b"12", "a number"),
        (b"{}", "without `method`"),
        (b'{"id":1}', "without `method`"),
        (b'{"id":1,"method":2}', "`method` is a string"),
        (b'{"method":null}', "`method` is a string"),
        (b'{"id":null,"method":"m"}', "not null"),
        (b'{"id":true,"method":"m"}', "not a boolean"),
        (b'{"id":{},"method":"m"}', "not an object"),
        (b'{"id":[],"method":"m"}', "not an array"),
        (b'{"id":1e999,"method":"m"}', "not a number"),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(line: bytes, words: str) -> None:
    envelope = decode(line)
    assert isinstance(envelope, Malformed)
    assert envelope.code == ErrorCode.INVALID_REQUEST
    assert words in envelope.message


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"id":5}', 5),
        (b'{"id":5,"method":7}', 5),
        (b'{"id":"five","method":null}', "five"),
        (b'{"id":5,"method":null,"result":{}}', 5),
        (b'{"id":5.5,"method":[]}', 5.5),
        (b'{"id":5,"method":"m","params":{"x":"\\ud800"}}', 5),
        (b'{"id":5,"method":"\\udc00"}', 5),
        (b'{"id":"\\ud800","method":"m"}', None),
        (b'{"id":[1],"method":"m"}', None),
        (b'{"id":true,"method":7}', None),
        (b'{"id":null,"method":7}', None),
        (b'{"method":7}', None),
        (b'{"params":{}}', None),
        (b'["\\ud800"]', None),
        (b'{"id":5', None),
    ],
)
def test_a_wrong_message_is_refused_under_its_id_where_it_has_one(line: bytes, request_id) -> None:
    envelope = decode(line)
    assert isinstance(envelope, Malformed)
    assert envelope.id == request_id


@pytest.mark.parametrize("rest", [{"method": "m"}, {"method": 7}, {}])
def test_an_id_that_is_too_long_is_refused_and_not_echoed(rest: dict) -> None:
    line = json.dumps({"id": "x" * (ID_LIMIT + 1), **rest}).encode()
    envelope = decode(line)
    assert isinstance(envelope, Malformed)
    assert (envelope.code, envelope.id) == (ErrorCode.INVALID_REQUEST, None)
    assert "1,024 characters" in envelope.message
    assert len(envelope.message) < 200


def test_an_id_may_be_as_long_as_the_limit() -> None:
    request_id = "é" * ID_LIMIT
    line = json.dumps({"id": request_id, "method": "m"}).encode()
    assert decode(line) == IncomingRequest(request_id, "m", {})


def test_a_surrogate_pair_is_text_like_any_other() -> None:
    envelope = decode(b'{"id":1,"method":"m","params":{"x":"\\ud83d\\ude00"}}')
    assert envelope == IncomingRequest(1, "m", {"x": "\U0001f600"})
