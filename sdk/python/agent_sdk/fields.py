"""Lenient readers for members of the agent's JSON objects.

A member that is missing or has another type gives an empty value, never an error: a newer agent
with a changed detail must not end a turn. The original object stays in `raw`.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether `value` is a JSON object."""
    return isinstance(value, dict)


def text(raw: Mapping[str, Any], key: str) -> str:
    """Return the string at `key`, "" if there is none."""
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def optional_text(raw: Mapping[str, Any], key: str) -> str | None:
    """Return the string at `key`, None if there is none."""
    value = raw.get(key)
    return value if isinstance(value, str) else None


def integer(raw: Mapping[str, Any], key: str) -> int | None:
    """Return the whole number at `key` (3.0 counts), None if there is none."""
    value = raw.get(key)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def objects(raw: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the array at `key`, without its other elements; [] if no array."""
    value: object = raw.get(key)
    return [one for one in value if is_object(one)] if is_array(value) else []


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether `value` is a JSON array."""
    return isinstance(value, list)
