"""Cursors of `thread/list`: opaque texts that mark the start of the next page.

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
"""Maximum characters; the server's own are far shorter."""


class BadCursor(ValueError):
    """A text that is not a cursor of this list; str() says why."""


@dataclass(frozen=True, slots=True)
class Position:
    """End of a page.

    `key` and `id` are those of its last thread: the time that the list sorts by, and the id.
    `last_move`: rows with a higher move number were moved since. `started_at`: time of the request
    for the first page, in seconds since 1970.
    """

    key: float
    id: str
    last_move: int
    started_at: float


def encode_cursor(position: Position, query: Query, home: str) -> str:
    """Return the cursor of a position, for this query and home."""
    payload = json.dumps([_VERSION, _digest(query), *astuple(position)]).encode()
    return base64.urlsafe_b64encode(_sum(payload, home) + payload).decode().rstrip("=")


def decode_cursor(text: str, query: Query, home: str) -> Position:
    """Return the position of a cursor. Raises BadCursor, also for another query or home."""
    try:
        if len(text) > MAX_CURSOR_CHARACTERS:
            raise ValueError
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        payload = data[_SUM:]
        # The last character can hold unused bits.
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
