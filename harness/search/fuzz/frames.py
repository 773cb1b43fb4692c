"""Cases with raw frames: bytes that no client should send, between valid requests.

The answers to raw bytes are not judged; the requests after them are, and so is a server that ends
or hangs. Each raw frame ends its line, so that it never becomes part of a valid request. No frame
changes a thread.
"""

import json
from collections.abc import Callable
from typing import Any

from harness.search.fuzz.sessions.chooser import Chooser
from harness.search.fuzz.sessions.turns import Json

# Nesting depths, the last beyond recursive parsers; the specification sets no limit.
_DEPTHS = (30, 128, 1000, 5000)
_SIZES = (70_000, 300_000, 1_100_000)
# Raw frames need their own process, so a document has many.
MAX_FRAMES = 24
# Further connections of a document.
MAX_CONNECTIONS = 3
_VALID_REQUEST: Json = {
    "method": "thread/read",
    "params": {"threadId": "$t.thread.id"},
    "expect": "any",
}
_REPLY_STEP: Json = {"reply": [{"message": {"deltas": ["o", "k"]}}]}

_IDS: tuple[Any, ...] = (
    *(0, -1, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, -(2**63), 1.5, 1e300, -0.0),
    *("", "0", "x" * 5000, "\u0000", "𝄞", "\u2028", True, False, None, [], [1], {}, {"id": 1}),
)
_VERSIONS: tuple[Any, ...] = ("1.0", "2.0", "2", 2, 2.0, "", None, [], {"v": 2}, True, "x" * 5000)
_LINES = (
    *("", " ", "\t", "\r", "null", "true", "0", "-0", '""', "[]", "{}", "[1, 2, 3]", "[[]]"),
    *("NaN", "Infinity", "[NaN]", "{'method': 'thread/read'}", "{broken", "}", "]", '"', "\\"),
    *('{"id": 1,}', '{"id": 01}', '{"id": 1e999}', "// no comment", "\ufeff{}", "{}\u2028{}"),
    *('{"id": {}}', '{"method": 1}', '{"method": null}', '{"id": 910001, "method": ""}'),
    *('{"id": 910002, "method": ["thread/read"]}', '{"method": "nobody/knowsThis"}'),
    '{"id": 910003, "method": "thread/loaded/list", "params": 1}',
    '{"id": 910004, "method": "thread/loaded/list", "params": []}',
    '{"id": 910005, "method": "thread/loaded/list", "params": null}',
    '{"id": 910006, "method": "thread/loaded/list", "result": {}, "error": {}}',
)
_ANSWERS: tuple[Json, ...] = (
    {"id": 920001, "result": {}},
    {"id": "920002", "result": None},
    {"id": None, "result": {"decision": "accept"}},
    {"id": 920003, "error": {"code": -32603, "message": "no"}},
    {"id": 920004, "error": "no"},
    {"id": 920005, "error": None, "result": None},
    {"id": [920006], "result": {}},
    {"id": 920007},
    {"result": {}},
    {"error": {"code": 1, "message": ""}},
)


def frame_document(choose: Chooser, *, by_websocket: bool = False) -> Json:
    """Return a scenario: a thread, raw frames with valid requests in between, a plain turn.

    Over a WebSocket a frame with invalid UTF-8 ends its connection (RFC 6455, 8.1), so such frames,
    and messages in pieces, are sent on further connections. Some documents have none, for servers
    that take one client.
    """
    client: list[Json] = [{"start_thread": {"as": "t"}}]
    for _ in range(1 + choose.below(MAX_FRAMES)):
        client.append({"send_raw": _raw(choose, text_only=by_websocket)})
        if choose.chance(30):
            client.append({"request": dict(_VALID_REQUEST)})
    if by_websocket and choose.chance(50):
        for number in range(1 + choose.below(MAX_CONNECTIONS)):
            client += _connection_steps(choose, f"c{number}")
    client.append({"start_turn": {"thread": "t", "text": "Say ok.", "as": "u"}})
    client.append({"wait": {"turn": "u", "status": "completed"}})
    return {"title": "Raw frames", "model": {"t": [_REPLY_STEP]}, "client": client}


def _connection_steps(choose: Chooser, name: str) -> list[Json]:
    """Return the steps of a further WebSocket connection, then a request on the first one."""
    form = choose.pick((_invalid_utf8, _message_in_pieces, _unfinished_message))
    frames = form(choose)
    raw = [frames + b"\n"] if isinstance(frames, bytes) else frames
    sent: list[Json] = [{"send_raw": {"hex": piece.hex(), "on": name}} for piece in raw]
    return [{"connect": name}, *sent, {"request": dict(_VALID_REQUEST)}]


def _message_in_pieces(choose: Chooser) -> list[bytes]:
    """Return the fragments of a request: bytes without a line end do not end a message."""
    request = _request(choose, params={"cursor": choose.pick(("𝄞", "a" * 70_000, ""))})
    size = choose.pick((1, 7, 30_000))
    cut = [request[at : at + size] for at in range(0, min(len(request), 20 * size), size)]
    return [*cut, request[sum(map(len, cut)) :] + b"\n"]


def _unfinished_message(choose: Chooser) -> list[bytes]:
    """Return the beginning of a message that never ends."""
    return [choose.pick((b"{", b"a" * 300_000, b"\xe2\x82", _truncated_line(choose)))]


def _raw(choose: Chooser, *, text_only: bool) -> Json:
    kinds: list[tuple[Callable[[Chooser], bytes], int]] = [
        (_line, 4),
        (_truncated_line, 2),
        (_joined_lines, 2),
        (_invalid_utf8, 0 if text_only else 2),
        (_control_characters, 1),
        (_giant_line, 1),
        (_deep_nesting, 2),
        (_duplicate_member, 2),
        (_odd_id, 3),
        (_odd_version, 1),
        (_answer, 3),
        (_blank_line, 1),
        (_odd_line_end, 1),
    ]
    line_bytes = choose.pick_weighted(kinds)(choose)
    try:
        line = line_bytes.decode()
    except UnicodeDecodeError:
        return {"hex": (line_bytes + b"\n").hex()}
    # As text if it is readable in a file.
    return {"line": line} if line.isprintable() else {"hex": (line_bytes + b"\n").hex()}


def _harmless(number: int, **more: Any) -> Json:
    return {"id": 900000 + number, "method": "thread/loaded/list", "params": {}, **more}


def _request(choose: Chooser, **more: Any) -> bytes:
    return json.dumps(_harmless(choose.below(9999)) | more).encode()


def _line(choose: Chooser) -> bytes:
    return choose.pick(_LINES).encode()


def _truncated_line(choose: Chooser) -> bytes:
    request = _request(choose)
    return request[: 1 + choose.below(len(request) - 1)]


def _joined_lines(choose: Chooser) -> bytes:
    between = choose.pick((b"", b" ", b"\r", b"\x00", b",", b"\x1e"))
    return between.join(_request(choose) for _ in range(2 + choose.below(2)))


def _invalid_utf8(choose: Chooser) -> bytes:
    bad = choose.pick((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\x82"))
    request = _request(choose, params={"limit": 1, "cursor": "HERE"})
    return choose.pick(
        (bad, bad * 100, request.replace(b"HERE", bad), bad + request, request + bad)
    )


def _control_characters(choose: Chooser) -> bytes:
    odd = choose.pick((b"\x00", b"\x1b[2J", b"\x7f", b"\x08", b"\x00" * 1000))
    request = _request(choose, params={"cursor": "HERE"})
    return choose.pick((odd, request.replace(b"HERE", odd), odd + request, request + odd))


def _giant_line(choose: Chooser) -> bytes:
    size = choose.pick(_SIZES)
    form = choose.below(4)
    if form == 0:
        return b"a" * size
    if form == 1:
        return b" " * size + _request(choose)
    if form == 2:
        return b'{"id": 900000, "method": "' + b"m" * size + b'", "params": {}}'
    return b"[" + b"0," * (size // 2) + b"0]"


def _deep_nesting(choose: Chooser) -> bytes:
    depth, closed = choose.pick(_DEPTHS), choose.chance(70)
    opened, end = choose.pick(((b"[", b"]"), (b'{"a":', b"}")))
    nest = opened * depth + b"0" + (end * depth if closed else b"")
    if choose.chance(50):
        return nest
    return b'{"id": 930001, "method": "thread/loaded/list", "params": {"cursor": ' + nest + b"}}"


def _duplicate_member(choose: Chooser) -> bytes:
    # Not the id: its answer could not be matched.
    name = choose.pick(("method", "params", "jsonrpc"))
    value = choose.pick(('"thread/loaded/list"', "{}", "null", "1", '"2.0"'))
    return _request(choose)[:-1] + f', "{name}": {value}}}'.encode()


def _odd_id(choose: Chooser) -> bytes:
    return _request(choose, id=choose.pick(_IDS))


def _odd_version(choose: Chooser) -> bytes:
    return _request(choose, jsonrpc=choose.pick(_VERSIONS))


def _answer(choose: Chooser) -> bytes:
    return json.dumps(choose.pick(_ANSWERS)).encode()


def _blank_line(choose: Chooser) -> bytes:
    return choose.pick((b"", b"\n\n\n", b" " * 5000, b"\r", b"\r\n\r\n", b"\n" * 500))


def _odd_line_end(choose: Chooser) -> bytes:
    return _request(choose) + choose.pick((b"\r", b"\r\r", b" \r", b"\r\n"))
