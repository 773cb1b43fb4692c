"""Schema violations of a message, in words."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from harness.protocol.values import Path, show_path

MAX_TEXT_CHARACTERS = 80
# Of several failures at one place, the first one in this order is reported.
_KEYWORDS_BY_WEIGHT = ("required", "enum", "constant", "type", "pattern")
_ARTICLES = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "a boolean",
    "null": "null",
}
_PATTERNS = {
    "^app://.": "a string of the form app://<connector-id>",
    "^#[0-9A-Fa-f]{6}$": "a colour of the form #RRGGBB",
}
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class RawError:
    """A failed keyword of a schema: its place in the message, its name, the clauses cited.

    `hint` marks a member that need not always be present.
    """

    path: Path
    keyword: str
    details: dict[str, Any]
    clauses: tuple[str, ...]
    hint: bool = False


@dataclass(frozen=True, slots=True)
class SchemaError:
    """One schema violation in a message.

    `path` leads to the value or the missing member; `expected` describes a valid value;
    `message` is the whole sentence, such as `status.type: expected one of idle, active; found
    "Idle"`; `clauses` are requirement ids, the nearest first. `hint` marks a member that is
    missing or null, and that the specification names without saying that it is always there.
    """

    path: Path
    message: str
    expected: str
    clauses: tuple[str, ...]
    hint: bool = False


def describe(raw: Iterable[RawError], instance: Any) -> list[SchemaError]:
    """Return the errors in words: of each place the most important one, sorted by place."""
    best: dict[Path, RawError] = {}
    for error in raw:
        place = error.path
        if error.keyword == "required":
            place = (*place, str(error.details["property"]))
        previous = best.get(place)
        if previous is None or _rank(error) < _rank(previous):
            best[place] = error
    errors = [_describe_error(place, error, instance) for place, error in best.items()]
    return sorted(errors, key=lambda error: _sort_key(error.path))


def show_value(value: Any) -> str:
    """Return a value in at most 80 characters; objects and arrays by their size."""
    if isinstance(value, dict):
        members = cast(dict[Any, Any], value)
        size = f"{len(members)} member" + ("s" if len(members) > 1 else "")
        return f"an object with {size}" if members else "an empty object"
    if isinstance(value, list):
        elements = cast(list[Any], value)
        return f"an array of {len(elements)}" if elements else "an empty array"
    if isinstance(value, str):
        value = value[: MAX_TEXT_CHARACTERS + 1]
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= MAX_TEXT_CHARACTERS else text[: MAX_TEXT_CHARACTERS - 1] + "…"


def _rank(error: RawError) -> int:
    return (
        _KEYWORDS_BY_WEIGHT.index(error.keyword)
        if error.keyword in _KEYWORDS_BY_WEIGHT
        else len(_KEYWORDS_BY_WEIGHT)
    )


def _sort_key(path: Path) -> tuple[tuple[int, int, str], ...]:
    return tuple((0, step, "") if isinstance(step, int) else (1, 0, step) for step in path)


def _describe_error(place: Path, error: RawError, instance: Any) -> SchemaError:
    expected = _expectation(error)
    value = _value_at(instance, place)
    actual = "it is missing" if value is _MISSING else f"found {show_value(value)}"
    message = f"{show_path(place)}: expected {expected}; {actual}"
    return SchemaError(place, message, expected, error.clauses, error.hint)


def _expectation(error: RawError) -> str:
    details = error.details
    if error.keyword == "required":
        return "the member to be there"
    if error.keyword == "enum":
        options = [
            option if isinstance(option, str) else json.dumps(option)
            for option in cast(list[Any], details["options"])
        ]
        return f"one of {', '.join(options)}"
    if error.keyword == "type":
        return " or ".join(_ARTICLES.get(name, name) for name in cast(list[str], details["types"]))
    if error.keyword == "pattern":
        pattern = str(details["pattern"])
        return _PATTERNS.get(pattern, f"a string that matches {pattern}")
    return f"a value that satisfies {error.keyword}"


def _value_at(instance: Any, path: Path) -> Any:
    value = instance
    for step in path:
        if isinstance(value, dict) and step in value:
            value = cast(dict[Any, Any], value)[step]
        elif isinstance(value, list) and isinstance(step, int):
            value = cast(list[Any], value)[step]
        else:
            return _MISSING
    return value
