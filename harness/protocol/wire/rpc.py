"""The envelopes: request, response, error response, notification, and the error codes.

Source: session-protocol "What the service does" (message forms); the error object and its codes are
not shown there, so the JSON-RPC 2.0 ones are taken.
"""

from enum import IntEnum
from typing import Any

from harness.protocol.wire.base import Json, WireModel

RequestId = str | int | float
"""The id of a request: the document shows a number; JSON-RPC also allows a string."""


class ErrorCode(IntEnum):
    """The standard JSON-RPC 2.0 error codes."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603


class RpcError(WireModel):
    """The `error` member of the answer to a rejected request."""

    code: int
    message: str
    data: Json = None


class Request(WireModel):
    """`{method, id, params}`: client to server, or a server request the other way."""

    method: str
    id: RequestId
    params: dict[str, Any]


class Response(WireModel):
    """`{id, result}`: the answer to the request of that id."""

    id: RequestId
    result: Json


class ErrorResponse(WireModel):
    """`{id, error}`; the id is null if that of the request could not be read."""

    id: RequestId | None
    error: RpcError


class Notification(WireModel):
    """`{method, params}`, never with an id."""

    method: str
    params: dict[str, Any]


class Empty(WireModel):
    """`{}`: params or a result without members."""
