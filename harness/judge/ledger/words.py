"""Short texts for a server's behaviour, equal for equal behaviour."""

import json
import re
from collections.abc import Iterable
from typing import Any

from harness.protocol.values import json_type, obj
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


def type_word(value: Any) -> str:
    """Return the JSON type of a value, such as "array", or "empty array" for an empty one."""
    name = json_type(value)
    return f"empty {name}" if name in ("string", "array", "object") and not value else name


def presence(value: Any) -> str:
    """Return "absent", "null" or "there"."""
    return {"absent": "absent", "null": "null"}.get(json_type(value), "there")


def word(value: Any) -> str:
    """Return a string that looks like a word as it is, a boolean as JSON, else the JSON type."""
    if isinstance(value, str) and len(value) <= _MAX_WORD_CHARACTERS and _WORD.fullmatch(value):
        return value
    if isinstance(value, bool):
        return json.dumps(value)
    return type_word(value)


def names(value: Any) -> str:
    """Return the sorted names of an object's members, or the JSON type of any other value."""
    if not isinstance(value, dict):
        return json_type(value)
    return join_sorted(str(name) for name in obj(value)) or "no member"


def join_sorted(words: Iterable[str]) -> str:
    """Return the different words, sorted and joined by commas."""
    return ", ".join(sorted(set(words)))
