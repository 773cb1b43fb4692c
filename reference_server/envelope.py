"""JSON-RPC decoding and encoding of lines, without I/O.

Methods and their params are not known here. Source: session-protocol "What the service does"; error
shapes are not shown there, so JSON-RPC 2.0's are used. `jsonrpc` is accepted, not required and not
written.
"""

import gc
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, cast

from harness.protocol.wire.base import Json, WireModel
from harness.protocol.wire.rpc import ErrorCode, RequestId
from reference_server.brief import brief, brief_value

ID_LIMIT = 1024
"""Characters of the longest id: it is echoed, and kept while its request is under way."""


class IncomingRequest(NamedTuple):
    """A request whose id can be answered. `params` is still any JSON value; absent reads as {}."""

    id: RequestId
    method: str
    params: Json


class IncomingNotification(NamedTuple):
    """A notification of the client."""

    method: str
    params: Json


class IncomingAnswer(NamedTuple):
    """The client's answer to a server request."""

    id: RequestId
    body: dict[str, Any]


class StrayAnswer(NamedTuple):
    """A response without a usable id; not answered, else two peers could send errors for ever."""

    words: str


class Malformed(NamedTuple):
    """A line that is not a valid message; it gets one error, with its own id if that is valid."""

    code: ErrorCode
    message: str
    id: RequestId | None = None


Envelope = IncomingRequest | IncomingNotification | IncomingAnswer | StrayAnswer | Malformed


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
LONG_LINE = 1 << 18
"""Characters of a line; the garbage collector is off while a longer one is parsed."""
ASIDE = "aside:"
"""Prefix of the method of a notification for a connection that is not subscribed to its thread.

Only dialects have such notifications; their edge removes the prefix.
"""
_encode = json.JSONEncoder(separators=(",", ":")).encode


def _parse_json(text: str) -> Json:
    if len(text) < LONG_LINE:
        return _decoder.decode(text)
    # None of its values is garbage yet. With millions of values, most of the time would go into
    # collections that find nothing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _decoder.decode(text)
    finally:
        if collecting:
            gc.enable()


def decode(line: bytes) -> Envelope:
    """Decode one line; a wrong one gives Malformed or StrayAnswer. Never raises."""
    try:
        text = line.decode()
        value = _parse_json(text.strip())
        # A lone surrogate has no UTF-8 form: it could be neither stored nor echoed.
        if ("\\ud" in text or "\\uD" in text) and not _has_utf8(value):
            return Malformed(
                ErrorCode.PARSE_ERROR,
                "the line is not valid Unicode text: it holds half of a surrogate pair",
                _usable_id(value),
            )
    except UnicodeError:
        return Malformed(ErrorCode.PARSE_ERROR, "the line is not valid Unicode text")
    except (ValueError, RecursionError) as error:
        words = brief(str(error) or type(error).__name__)
        return Malformed(ErrorCode.PARSE_ERROR, f"the line is not JSON: {words}")
    if not isinstance(value, dict):
        return Malformed(
            ErrorCode.INVALID_REQUEST, f"a message is a JSON object, not {_kind(value)}"
        )
    return _classify(cast("dict[str, Any]", value))


def _has_utf8(value: Json) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError:
        return False
    return True


def _usable_id(message: Json) -> RequestId | None:
    """Return the id of an otherwise wrong message; None if it has none that can be echoed."""
    request_id: Json = (
        cast("dict[str, Any]", message).get("id") if isinstance(message, dict) else None
    )
    return request_id if is_request_id(request_id) and _has_utf8(request_id) else None


def _classify(message: dict[str, Any]) -> Envelope:
    has_id = "id" in message
    is_answer = "method" not in message and ("result" in message or "error" in message)
    if is_answer and not (has_id and is_request_id(message["id"])):
        return StrayAnswer(brief_value(message))
    if has_id and not is_request_id(message["id"]):
        if isinstance(message["id"], str):
            words = f"`id` is a string of more than {ID_LIMIT:,} characters; use a shorter one"
        else:
            words = f"`id` is a number or a string, not {_kind(message['id'])}"
        return Malformed(ErrorCode.INVALID_REQUEST, words)
    method: Json = message.get("method")
    if isinstance(method, str):
        params = message.get("params", {})
        if has_id:
            return IncomingRequest(message["id"], method, params)
        return IncomingNotification(method, params)
    if "method" in message:
        return Malformed(
            ErrorCode.INVALID_REQUEST,
            f"`method` is a string, not {_kind(message['method'])}",
            message.get("id"),
        )
    if is_answer:
        return IncomingAnswer(message["id"], message)
    return Malformed(
        ErrorCode.INVALID_REQUEST,
        "a message without `method` is not a request",
        message.get("id"),
    )


def is_request_id(value: Json) -> bool:
    """Return whether a value can be an id: a finite number, a string of at most ID_LIMIT."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return len(value) <= ID_LIMIT
    return isinstance(value, int) and not isinstance(value, bool)


def encode_result(request_id: RequestId, result: WireModel) -> bytes:
    """Encode `{id, result}`, the id exactly as it was received."""
    return b'{"id":%b,"result":%b}' % (_encode(request_id).encode(), result.encode())


def encode_error(request_id: RequestId | None, code: int, message: str) -> bytes:
    """Encode `{id, error}`; None as id becomes null."""
    return _encode({"id": request_id, "error": {"code": int(code), "message": message}}).encode()


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Encode a message that is JSON as it is."""
    return _encode(message).encode()


def encode_notification(method: str, params: WireModel) -> bytes:
    """Encode `{method, params}`."""
    return b'{"method":"%b","params":%b}' % (method.encode(), params.encode())


def encode_aside(method: str, params: WireModel) -> bytes:
    """Encode a notification for a connection that is not subscribed; a dialect's edge reads it."""
    return encode_notification(ASIDE + method, params)


def encode_request(request_id: int, method: str, params: WireModel) -> bytes:
    """Encode `{method, id, params}`."""
    return b'{"method":"%b","id":%d,"params":%b}' % (method.encode(), request_id, params.encode())


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"
