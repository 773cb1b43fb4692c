"""Values that came back earlier, in what is sent later: `$t.thread.id`.

Only a whole text is a reference; `$$` at its beginning stands for one `$`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness.errors import HarnessError
from harness.protocol.values import MISSING
from harness.scenario.paths import members
from harness.scenario.yaml12 import Loc

_REFERENCE = re.compile(r"\$(?P<alias>[A-Za-z][A-Za-z0-9_-]*)(?P<path>(\.[A-Za-z0-9_/-]+)*)")


class UnknownValue(HarnessError):
    """A reference whose path leads nowhere in what came back."""


def references(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, str]]:
    """Every reference in a value: where it stands, and its alias."""
    for place, text in texts(value, loc):
        found = _REFERENCE.fullmatch(text)
        if found:
            yield place, found["alias"]


def resolved(value: Any, values: Mapping[str, Any]) -> Any:
    """The value with every reference replaced. Raises `UnknownValue`."""
    if isinstance(value, str):
        found = _REFERENCE.fullmatch(value)
        if found:
            return _follow(value, found, values)
        return value[1:] if value.startswith("$$") else value
    if isinstance(value, list):
        return [resolved(item, values) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: resolved(item, values) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def texts(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, str]]:
    """Every text in a value, and where it stands."""
    if isinstance(value, str):
        yield loc, value
    elif isinstance(value, list):
        for index, item in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from texts(item, (*loc, index))
    elif isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from texts(item, (*loc, str(key)))  # pyright: ignore[reportUnknownArgumentType]


def _follow(whole: str, found: re.Match[str], values: Mapping[str, Any]) -> Any:
    value = values.get(found["alias"], MISSING)
    if value is MISSING:
        raise UnknownValue(f"{whole}: nothing came back under the name {found['alias']}")
    for name in found["path"].split(".")[1:]:
        held = members(value)
        if name not in held:
            there = ", ".join(held) or "nothing"
            raise UnknownValue(f"{whole}: there is no {name!r}; there is: {there}")
        value = held[name]
    return value
