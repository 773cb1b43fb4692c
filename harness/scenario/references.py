"""References in messages to values of earlier results: `$t.thread.id`.

Only a whole text is a reference; a leading `$$` means `$`.
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
    """A reference to an unknown alias, or to a path that its value does not have."""


def references(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, str]]:
    """Yield every reference in a value: its place, and its alias."""
    for place, alias, _ in paths_of_references(value, loc):
        yield place, alias


def paths_of_references(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, str, tuple[str, ...]]]:
    """Yield every reference in a value: its place, its alias, and the steps of its path."""
    for place, text in texts(value, loc):
        match = _REFERENCE.fullmatch(text)
        if match:
            yield place, match["alias"], tuple(match["path"].split(".")[1:])


def resolve_references(value: Any, values: Mapping[str, Any]) -> Any:
    """Return a copy with references replaced. Raises `UnknownValue` for one without a value."""
    if isinstance(value, str):
        match = _REFERENCE.fullmatch(value)
        if match:
            return _follow(value, match, values)
        return value[1:] if value.startswith("$$") else value
    if isinstance(value, list):
        return [resolve_references(item, values) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: resolve_references(item, values) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def texts(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, str]]:
    """Yield every text in a value, with its path."""
    if isinstance(value, str):
        yield loc, value
    elif isinstance(value, list):
        for index, item in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from texts(item, (*loc, index))
    elif isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from texts(item, (*loc, str(key)))  # pyright: ignore[reportUnknownArgumentType]


def _follow(reference: str, match: re.Match[str], values: Mapping[str, Any]) -> Any:
    value = values.get(match["alias"], MISSING)
    if value is MISSING:
        raise UnknownValue(f"{reference}: nothing came back under the name {match['alias']}")
    for name in match["path"].split(".")[1:]:
        named = members(value)
        if name not in named:
            names = ", ".join(named) or "nothing"
            raise UnknownValue(f"{reference}: there is no {name!r}; there is: {names}")
        value = named[name]
    return value
