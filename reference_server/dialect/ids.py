"""Ids of threads and turns as UUIDv7, both ways without a table.

`thr_12` becomes a UUID of which the time field grows with the number and the random field has it,
so that ids sort by age, and the same play has the same ids again. Source: RFC 9562, "UUID Version
7".
"""

import re
from functools import lru_cache

BASE_MS = 0x019B_0000_0000
"""The time field of number 0, in milliseconds: December 2025."""
_KINDS = {"thr": 1, "turn": 2}
_PREFIXES = {number: prefix for prefix, number in _KINDS.items()}
_TEXT_ID = re.compile(r"\b(thr|turn)_([0-9]{1,15})\b")
_UUID = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-700([12])-8([0-9a-f]{3})-([0-9a-f]{12})\b", re.IGNORECASE
)
_UUID_LENGTH = 36


@lru_cache(maxsize=1024)
def to_uuid(text_id: str) -> str:
    """Return the UUID of `thr_<n>` or `turn_<n>`; any other text unchanged."""
    match = _TEXT_ID.fullmatch(text_id)
    return text_id if match is None else _uuid(match)


def from_uuid(uuid: str) -> str:
    """Return the text's id of a UUID made by `to_uuid`; any other text unchanged."""
    return _from_uuid(uuid) if len(uuid) == _UUID_LENGTH else uuid


@lru_cache(maxsize=1024)
def _from_uuid(uuid: str) -> str:
    match = _UUID.fullmatch(uuid)
    if match is None:
        return uuid
    text_id = _text_id(match)
    return text_id if to_uuid(text_id) == uuid.lower() else uuid


def with_uuids(message: str) -> str:
    """Return a message with a UUID in place of each id of a thread or turn."""
    return _TEXT_ID.sub(_uuid, message)


def _uuid(match: re.Match[str]) -> str:
    number = int(match[2])
    time = f"{BASE_MS + (number & 0xFFFF_FFFF):012x}"
    high, low = divmod(number, 1 << 48)
    return f"{time[:8]}-{time[8:]}-700{_KINDS[match[1]]}-8{high:03x}-{low:012x}"


def _text_id(match: re.Match[str]) -> str:
    number = (int(match[2], 16) << 48) + int(match[3], 16)
    return f"{_PREFIXES[int(match[1])]}_{number}"
