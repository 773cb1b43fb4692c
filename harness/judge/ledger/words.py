"""Short words for what a server did, the same whenever it did the same."""

import json
import re
from collections.abc import Iterable
from typing import Any

from harness.protocol.values import MISSING, obj
from harness.trace.frame import Frame, Kind

GRANTED, UNANSWERED = "granted", "not answered"
_MAX_WORD_CHARACTERS = 60
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_/. -]*")


def outcome(answer: Frame) -> str:
    """Return the outcome of a request: "granted", "refused: -32600", "refused" without a code."""
    if answer.kind is Kind.RESPONSE:
        return GRANTED
    code = obj(answer.failure).get("code")
    return f"refused: {code}" if isinstance(code, int | str) else "refused"


def kind(value: Any) -> str:
    """The JSON type of a value; "absent" where there is none."""
    if value is MISSING:
        return "absent"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def filled(value: Any) -> str:
    """The JSON type, and whether a string, array or object is empty."""
    name = kind(value)
    return f"empty {name}" if name in ("string", "array", "object") and not value else name


def presence(value: Any) -> str:
    """ "absent", "null", or "there"."""
    return {"absent": "absent", "null": "null"}.get(kind(value), "there")


def word(value: Any) -> str:
    """A string that is a word by itself, else the JSON type. For members that hold words only."""
    if isinstance(value, str) and len(value) <= _MAX_WORD_CHARACTERS and _WORD.fullmatch(value):
        return value
    if isinstance(value, bool):
        return json.dumps(value)
    return filled(value)


def names(value: Any) -> str:
    """The names of an object's members, sorted; the JSON type where it is no object."""
    if not isinstance(value, dict):
        return kind(value)
    return listed(str(name) for name in obj(value)) or "no member"


def listed(found: Iterable[str]) -> str:
    """Words, each once, sorted, with commas."""
    return ", ".join(sorted(set(found)))
