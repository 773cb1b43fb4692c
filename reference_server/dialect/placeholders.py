"""Placeholders in the values of a dialect's rows.

`{version}` is the release, `{home}` the folder of settings, `{client}` the client's name,
`{client_version}` its version, `{now_ms}` and `{now_s}` the time, `{null}` null, `{.name}` a
member of the object that gets the value, `{params.a.b}` a member of the request, `{result.a.b}` of
the answer to `via`. A string that is one placeholder becomes the value itself, a number or an
object too; null if there is none.
"""

import re
import shlex
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from reference_server.dialect.memory import KINDS, Memory

_PLACEHOLDER = re.compile(r"\{(\.?[A-Za-z_]+(?:[./][A-Za-z_]+)*(?::words|:text)?)\}")
_WORDS = ":words"
_TEXT = ":text"

Fill = Callable[[Mapping[str, Any]], Any]
"""Returns a value with its placeholders filled from an object."""


def has_value(value: Any) -> bool:
    """Return whether a value is neither null, false nor empty; zero is a value."""
    return value is not None and value is not False and value not in ("", [], {})


def split_words(line: Any) -> Any:
    """Return the words of a command line; any other value unchanged."""
    if not isinstance(line, str):
        return line
    try:
        return shlex.split(line)
    except ValueError:
        return [line]


def filler(value: Any, facts: Mapping[str, Any]) -> Fill:
    """Return a function that fills the value; `facts` can change after this call."""
    if isinstance(value, str):
        return _text_filler(value, facts)
    if isinstance(value, list):
        fills = [filler(element, facts) for element in cast("list[Any]", value)]
        return lambda around: [fill(around) for fill in fills]
    if isinstance(value, dict):
        members = {
            name: filler(member, facts) for name, member in cast("dict[str, Any]", value).items()
        }
        return lambda around: {name: fill(around) for name, fill in members.items()}
    return lambda around: value


def _text_filler(text: str, facts: Mapping[str, Any]) -> Fill:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole is not None:
        name = whole[1]
        return lambda around: _value_of(name, around, facts)
    if _PLACEHOLDER.search(text) is None:
        return lambda around: text
    return lambda around: _PLACEHOLDER.sub(
        lambda match: str(_value_of(match[1], around, facts)), text
    )


def _value_of(name: str, around: Mapping[str, Any], facts: Mapping[str, Any]) -> Any:
    if name == "now_ms":
        return time.time_ns() // 1_000_000
    if name == "now_s":
        return time.time_ns() // 1_000_000_000
    if name.endswith(_WORDS):
        line = _value_of(name.removesuffix(_WORDS), around, facts)
        return split_words(line)
    if name.endswith(_TEXT):
        # Details of a failure begin with its code.
        details = _value_of(name.removesuffix(_TEXT), around, facts)
        return details.partition(": ")[2] or details if isinstance(details, str) else details
    memory = facts.get("memory")
    if isinstance(memory, Memory) and name.partition(".")[0] in KINDS:
        message = facts.get("message")
        return memory.value(
            name,
            cast("dict[str, Any]", around),
            cast("dict[str, Any]", message) if isinstance(message, dict) else {},
        )
    value: Any = around if name.startswith(".") else facts
    for step in name.removeprefix(".").split("."):
        value = cast("dict[str, Any]", value).get(step) if isinstance(value, Mapping) else None
    return value
