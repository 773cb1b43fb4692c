"""Placeholders in the values of a dialect's rows.

`{version}` is the release, `{home}` the folder of settings, `{client}` the client's name,
`{client_version}` its version, `{now_ms}` and `{now_s}` the time, `{null}` null, `{.name}` a
member of the object that gets the value, `{params.a.b}` a member of the request, `{result.a.b}` of
the answer to `via`. A string that is one placeholder becomes the value itself, a number or an
object too; null if there is none. `{settings.a}` is a setting of the home. `{x:words}` are the
words of a command line, `{x:text}` the text after the code of an error's details, `{x:status}` the
HTTP status in an error's message, `{x:items}` the entries of `thread/items/list` for turns.
"""

import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from reference_server.dialect.memory import KINDS, Memory

_PLACEHOLDER = re.compile(r"\{(\.?[A-Za-z_]+(?:[./][A-Za-z_]+)*(?::words|:text|:status|:items)?)\}")
_WORDS = ":words"
_TEXT = ":text"
_STATUS = ":status"
_ITEMS = ":items"
_HTTP_STATUS = re.compile(r"HTTP status ([0-9]{3})")

Fill = Callable[[Mapping[str, Any]], Any]
"""Returns a value with its placeholders filled from an object. Nobody changes what it returns."""


class Constant:
    """A `Fill` of a value without placeholders: always the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _around: Mapping[str, Any]) -> Any:
        """Return the value."""
        return self.value


def has_value(value: Any) -> bool:
    """Return whether a value is neither null, false nor empty; zero is a value."""
    if value or value is None or value is False:
        return bool(value)
    return isinstance(value, int | float)


class Conditions(NamedTuple):
    """The values that a row needs, and those that it must not meet."""

    needs: tuple[Fill, ...]
    unless: tuple[Fill, ...]

    @classmethod
    def of_row(
        cls, needs: Sequence[str], unless: Sequence[str], facts: Mapping[str, Any]
    ) -> "Conditions":
        """Return the conditions that a row gives as placeholders."""
        return cls(
            tuple(filler(text, facts) for text in needs),
            tuple(filler(text, facts) for text in unless),
        )

    def hold_for(self, around: Mapping[str, Any]) -> bool:
        """Return whether all `needs` and none of `unless` have a value, filled from an object."""
        # Not all(): for the one row or none that there is, a generator costs more than the test.
        for fill in self.needs:
            value = fill(around)
            if not value and not has_value(value):
                return False
        for fill in self.unless:
            value = fill(around)
            if value or has_value(value):
                return False
        return True


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
        if all(isinstance(fill, Constant) for fill in fills):
            return Constant([fill({}) for fill in fills])
        return lambda around: [fill(around) for fill in fills]
    if isinstance(value, dict):
        members = {
            name: filler(member, facts) for name, member in cast("dict[str, Any]", value).items()
        }
        return _object_filler(members)
    return Constant(value)


def _object_filler(members: Mapping[str, Fill]) -> Fill:
    # The variable members are filled into a copy of the constant ones, which keeps their order.
    template = {
        name: fill.value if isinstance(fill, Constant) else None for name, fill in members.items()
    }
    variable = [(name, fill) for name, fill in members.items() if not isinstance(fill, Constant)]
    if not variable:
        return Constant(template)

    def fill_object(around: Mapping[str, Any]) -> Any:
        value = template.copy()
        for name, fill in variable:
            value[name] = fill(around)
        return value

    return fill_object


def _text_filler(text: str, facts: Mapping[str, Any]) -> Fill:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole is not None:
        return _getter(whole[1], facts)
    parts = _PLACEHOLDER.split(text)
    if len(parts) == 1:
        return Constant(text)
    # Texts and names of placeholders take turns.
    fills = [
        _getter(part, facts) if number % 2 else Constant(part) for number, part in enumerate(parts)
    ]
    return lambda around: "".join(str(fill(around)) for fill in fills)


def _getter(name: str, facts: Mapping[str, Any]) -> Fill:
    """Return a function that gives the value of a placeholder, chosen once by its name."""
    if name == "null":
        return Constant(None)
    if name == "now_ms":
        return _now_ms
    if name == "now_s":
        return _now_s
    if name.endswith(_WORDS):
        line = _getter(name.removesuffix(_WORDS), facts)
        return lambda around: split_words(line(around))
    if name.endswith(_TEXT):
        details = _getter(name.removesuffix(_TEXT), facts)
        return lambda around: _without_code(details(around))
    if name.endswith(_STATUS):
        message = _getter(name.removesuffix(_STATUS), facts)
        return lambda around: _http_status_of(message(around))
    if name.endswith(_ITEMS):
        turns = _getter(name.removesuffix(_ITEMS), facts)
        return lambda around: _items_of(turns(around) or [], _members(facts.get("params")))
    memory = facts.get("memory")
    kind, _, fact = name.partition(".")
    if isinstance(memory, Memory) and kind in KINDS:
        value_of = memory.facts_of(kind)
        return lambda around: value_of(fact, around, facts)
    steps = name.removeprefix(".").split(".")
    if name.startswith("."):
        if len(steps) == 1:
            member = steps[0]
            return lambda around: around.get(member)
        return lambda around: _value_at(around, steps)
    if len(steps) == 1:
        return lambda around: facts.get(name)
    first, rest = steps[0], steps[1:]
    return lambda around: _value_at(facts.get(first), rest)


def _now_ms(_around: Mapping[str, Any]) -> int:
    return time.time_ns() // 1_000_000


def _now_s(_around: Mapping[str, Any]) -> int:
    return time.time_ns() // 1_000_000_000


def _items_of(turns: list[Any], params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the items of turns as entries of `thread/items/list`, in one page."""
    wanted = params.get("turnId")
    entries = [
        {
            "turnId": turn["id"],
            "item": item,
            "startedAtMs": item.get("startedAtMs"),
            "completedAtMs": item.get("completedAtMs"),
        }
        for turn in turns
        if wanted in (None, turn["id"])
        for item in turn["items"]
    ]
    return entries[::-1] if params.get("sortDirection") == "desc" else entries


def _without_code(details: Any) -> Any:
    """Return the details of a failure without the code with which they begin."""
    return details.partition(": ")[2] or details if isinstance(details, str) else details


def _http_status_of(message: Any) -> int | None:
    """Return the HTTP status that the message of an error names, None if it names none."""
    match = _HTTP_STATUS.search(message) if isinstance(message, str) else None
    return int(match[1]) if match else None


def _members(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _value_at(value: Any, steps: list[str]) -> Any:
    """Return the value at the end of the steps, None if there is none."""
    for step in steps:
        # Most are dicts, which are known faster than other mappings.
        if type(value) is dict or isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(step)
        else:
            return None
    return value
