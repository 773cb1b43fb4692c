"""Raw frames: cases that send bytes which no client should send, between requests that are right.

Nobody is blamed for raw bytes and nothing is owed for them; the requests after them are judged as
ever, and so is a server that ends or hangs. Each raw frame ends its line, so that it never becomes
part of a right request. None asks for anything that changes a thread.
"""

import json
from collections.abc import Callable
from typing import Any

from harness.search.fuzz.sessions.chooser import Chooser
from harness.search.fuzz.sessions.turns import Json

# Deeper than what parsers that recurse take at once; the text has no limit.
_DEPTHS = (30, 128, 1000, 5000)
_SIZES = (70_000, 300_000, 1_100_000)
# A process is not shared by what sends raw bytes: many of them for each start.
MAX_FRAMES = 24
_RIGHT: Json = {
    "method": "thread/read",
    "params": {"threadId": "$t.thread.id"},
    "expect": "any",
}
_SPEAKS: Json = {"reply": [{"message": {"deltas": ["o", "k"]}}]}

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


def frame_document(choose: Chooser, *, text_only: bool = False) -> Json:
    """A document: a thread, raw frames with right requests after them, a plain turn.

    `text_only`: no invalid UTF-8, for a WebSocket, which has to be closed where a text frame holds
    such bytes (RFC 6455, section 8.1).
    """
    client: list[Json] = [{"start_thread": {"as": "t"}}]
    for _ in range(1 + choose.below(MAX_FRAMES)):
        client.append({"send_raw": _raw(choose, text_only=text_only)})
        if choose.chance(30):
            client.append({"request": dict(_RIGHT)})
    client.append({"start_turn": {"thread": "t", "text": "Say ok.", "as": "u"}})
    client.append({"wait": {"turn": "u", "status": "completed"}})
    return {"title": "Raw frames", "model": {"t": [_SPEAKS]}, "client": client}


def _raw(choose: Chooser, *, text_only: bool) -> Json:
    kinds: list[tuple[Callable[[Chooser], bytes], int]] = [
        (_line, 4),
        (_truncated, 2),
        (_joined, 2),
        (_no_utf8, 0 if text_only else 2),
        (_control, 1),
        (_giant, 1),
        (_deep, 2),
        (_twice, 2),
        (_odd_id, 3),
        (_odd_version, 1),
        (_answer, 3),
        (_blank, 1),
        (_crlf, 1),
    ]
    line_bytes = choose.weighted(kinds)(choose)
    try:
        line = line_bytes.decode()
    except UnicodeDecodeError:
        return {"hex": (line_bytes + b"\n").hex()}
    # As a text where a reader of the file can see what it is.
    return {"line": line} if line.isprintable() else {"hex": (line_bytes + b"\n").hex()}


def _harmless(number: int, **more: Any) -> Json:
    return {"id": 900000 + number, "method": "thread/loaded/list", "params": {}, **more}


def _request(choose: Chooser, **more: Any) -> bytes:
    return json.dumps(_harmless(choose.below(9999)) | more).encode()


def _line(choose: Chooser) -> bytes:
    return choose.one(_LINES).encode()


def _truncated(choose: Chooser) -> bytes:
    request = _request(choose)
    return request[: 1 + choose.below(len(request) - 1)]


def _joined(choose: Chooser) -> bytes:
    between = choose.one((b"", b" ", b"\r", b"\x00", b",", b"\x1e"))
    return between.join(_request(choose) for _ in range(2 + choose.below(2)))


def _no_utf8(choose: Chooser) -> bytes:
    bad = choose.one((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\x82"))
    request = _request(choose, params={"limit": 1, "cursor": "HERE"})
    return choose.one((bad, bad * 100, request.replace(b"HERE", bad), bad + request, request + bad))


def _control(choose: Chooser) -> bytes:
    odd = choose.one((b"\x00", b"\x1b[2J", b"\x7f", b"\x08", b"\x00" * 1000))
    request = _request(choose, params={"cursor": "HERE"})
    return choose.one((odd, request.replace(b"HERE", odd), odd + request, request + odd))


def _giant(choose: Chooser) -> bytes:
    size = choose.one(_SIZES)
    form = choose.below(4)
    if form == 0:
        return b"a" * size
    if form == 1:
        return b" " * size + _request(choose)
    if form == 2:
        return b'{"id": 900000, "method": "' + b"m" * size + b'", "params": {}}'
    return b"[" + b"0," * (size // 2) + b"0]"


def _deep(choose: Chooser) -> bytes:
    depth, closed = choose.one(_DEPTHS), choose.chance(70)
    opened, end = choose.one(((b"[", b"]"), (b'{"a":', b"}")))
    nest = opened * depth + b"0" + (end * depth if closed else b"")
    if choose.chance(50):
        return nest
    return b'{"id": 930001, "method": "thread/loaded/list", "params": {"cursor": ' + nest + b"}}"


def _twice(choose: Chooser) -> bytes:
    # Not the id: whose answer it would be, nobody could say.
    name = choose.one(("method", "params", "jsonrpc"))
    value = choose.one(('"thread/loaded/list"', "{}", "null", "1", '"2.0"'))
    return _request(choose)[:-1] + f', "{name}": {value}}}'.encode()


def _odd_id(choose: Chooser) -> bytes:
    return _request(choose, id=choose.one(_IDS))


def _odd_version(choose: Chooser) -> bytes:
    return _request(choose, jsonrpc=choose.one(_VERSIONS))


def _answer(choose: Chooser) -> bytes:
    return json.dumps(choose.one(_ANSWERS)).encode()


def _blank(choose: Chooser) -> bytes:
    return choose.one((b"", b"\n\n\n", b" " * 5000, b"\r", b"\r\n\r\n", b"\n" * 500))


def _crlf(choose: Chooser) -> bytes:
    return _request(choose) + choose.one((b"\r", b"\r\r", b" \r", b"\r\n"))
