"""Cursors of `thread/list`: opaque text by which the next page is found.

A cursor is valid for one home and for the filters and the order of its request; a checksum detects
a damaged one.
"""

import base64
import hashlib
import json
import math
from dataclasses import astuple, dataclass
from typing import Any

from reference_server.index.query import Query

_VERSION = 1
_SUM = 8
MAX_CURSOR_CHARACTERS = 2048
"""Characters; none that a server makes comes near."""


class BadCursor(ValueError):
    """The text is not a cursor of this list; str() says why."""


@dataclass(frozen=True, slots=True)
class Position:
    """The end of a page.

    `key` and `id` are the last thread's. `last_move`: rows with a higher one were moved since.
    `started_at`: when the first page was asked for, in seconds since 1970.
    """

    key: float
    id: str
    last_move: int
    started_at: float


def encode_cursor(position: Position, query: Query, home: str) -> str:
    """Write a position as text."""
    payload = json.dumps([_VERSION, _digest(query), *astuple(position)]).encode()
    return base64.urlsafe_b64encode(_sum(payload, home) + payload).decode().rstrip("=")


def decode_cursor(text: str, query: Query, home: str) -> Position:
    """Read a cursor that came with these filters. Raises BadCursor."""
    try:
        if len(text) > MAX_CURSOR_CHARACTERS:
            raise ValueError
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        payload = data[_SUM:]
        # The last character can hold bits that mean nothing.
        canonical = base64.urlsafe_b64encode(data).decode().rstrip("=") == text
        if not canonical or data[:_SUM] != _sum(payload, home):
            raise ValueError
        version, digest, key, thread, moved, started_at = json.loads(payload)
        position = Position(float(key), _str(thread), _int(moved), float(started_at))
        if version != _VERSION or not (math.isfinite(position.key) and math.isfinite(started_at)):
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise BadCursor("is no cursor that this server gave for this home") from None
    if digest != _digest(query):
        raise BadCursor("came with another order or other filters; give those again, or no cursor")
    return position


def _digest(query: Query) -> str:
    text = json.dumps([query.sort, *query.filters()])
    return hashlib.blake2b(text.encode(), digest_size=_SUM).hexdigest()


def _sum(payload: bytes, home: str) -> bytes:
    key = hashlib.blake2b(home.encode("utf-8", "surrogateescape")).digest()
    return hashlib.blake2b(payload, digest_size=_SUM, key=key).digest()


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _int(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value
