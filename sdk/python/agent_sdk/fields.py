"""Reading members of the agent's JSON objects, which may lack any member or hold another type.

A member that is missing or of another type gives the empty value of the field: an agent that is
newer than this SDK must not end a turn by a changed detail. What was sent is in `raw`.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value of JSON is an object."""
    return isinstance(value, dict)


def text(raw: Mapping[str, Any], key: str) -> str:
    """Return the string at `key`, or ""."""
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def optional_text(raw: Mapping[str, Any], key: str) -> str | None:
    """Return the string at `key`, or None."""
    value = raw.get(key)
    return value if isinstance(value, str) else None


def integer(raw: Mapping[str, Any], key: str) -> int | None:
    """Return the whole number at `key`, or None."""
    value = raw.get(key)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def objects(raw: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the array at `key`; none where there is no array."""
    value: object = raw.get(key)
    return [one for one in value if is_object(one)] if is_array(value) else []


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether a value of JSON is an array."""
    return isinstance(value, list)
