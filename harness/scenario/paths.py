"""Dotted paths of a scenario, such as `item.content.0.text`: a number is an index of a list.

`*` in a path is any element of a list: one of them must have the value.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, cast

from harness.protocol.values import MISSING, show_path
from harness.scenario.yaml12 import Loc
from harness.trace.difference import literal


def members(value: Any) -> dict[str, Any]:
    """Return the members of an object, or the elements of a list by their indexes, else {}."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if isinstance(value, list):
        return {str(index): item for index, item in enumerate(cast("list[Any]", value))}
    return {}


def value_at(value: Any, dotted: str) -> Any:
    """Return the value at a dotted path, `MISSING` if the path does not exist."""
    for step in dotted.split("."):
        value = members(value).get(step, MISSING)
    return value


def has_values(value: Any, expected: dict[str, Any]) -> bool:
    """Return whether each dotted path in `value` has its expected value."""
    return not _differing_paths(value, expected)


def describe_expected(message: str, expected: dict[str, Any]) -> str:
    """Return a description such as `item/started where item.type: "plan"`."""
    conditions = " and ".join(f"{path}: {literal(value)}" for path, value in expected.items())
    return message + (f" where {conditions}" if conditions else "")


def describe_nearest(
    values: Sequence[Any],
    expected: dict[str, Any],
    *,
    within: Loc = (),
    fate_of_match: str = "was taken by an earlier step",
) -> str:
    """Return how many messages came and where the most similar one differs; "" if none came.

    `within` is the path from the message to the values, `fate_of_match` the reason why a matching
    one did not count.
    """
    if not values:
        return ""
    differing = [_differing_paths(value, expected) for value in values]
    fewest = min(map(len, differing))
    if not fewest:
        return f"{len(values)} came, and what fits {fate_of_match}"
    index = max(index for index, paths in enumerate(differing) if len(paths) == fewest)
    # For `*`, show the whole list.
    path = differing[index][0].partition(".*")[0]
    place = show_path((*within, *_json_path(values[index], path)))
    actual = literal(value_at(values[index], path))
    came = "1 came, with" if len(values) == 1 else f"{len(values)} came, the nearest with"
    return f"{came} {place}: {actual}"


def nest_paths(values: dict[str, Any]) -> dict[str, Any]:
    """Return the nested object that dotted paths describe; numbers become keys, not indexes."""
    result: dict[str, Any] = {}
    for dotted, value in values.items():
        *steps, last = dotted.split(".")
        holder: Any = result
        for step in steps:
            holder = holder.setdefault(step, {}) if isinstance(holder, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(holder, dict):
            holder[last] = deepcopy(value)
    return result


def numbers_as_lists(value: Any, loc: Loc = ()) -> tuple[Any, dict[Loc, Loc]]:
    """Return the value with lists for objects of numeric keys, and new path -> old path.

    The lists are as short as possible: `content.3` alone makes one element.
    """
    paths: dict[Loc, Loc] = {}

    def convert(value: Any, new: Loc, old: Loc) -> Any:
        paths[new] = old
        if not isinstance(value, dict):
            return value
        named = cast("dict[str, Any]", value)
        if not named or not all(key.isdecimal() for key in named):
            return {key: convert(inner, (*new, key), (*old, key)) for key, inner in named.items()}
        keys = sorted(named, key=int)
        return [convert(named[key], (*new, index), (*old, key)) for index, key in enumerate(keys)]

    return convert(value, loc, loc), paths


def _differing_paths(value: Any, expected: dict[str, Any]) -> list[str]:
    """Return the paths at which no value is the expected one."""
    return [
        path
        for path, value_expected in expected.items()
        if value_expected not in _values_at(value, path)
    ]


def _values_at(value: Any, dotted: str) -> list[Any]:
    """Return the values at a dotted path; with `*`, those in each element of the list."""
    values = [value]
    for step in dotted.split("."):
        if step == "*":
            values = [
                element
                for holder in values
                if isinstance(holder, list)
                for element in members(holder).values()
            ]
        else:
            values = [members(holder).get(step, MISSING) for holder in values]
    return values


def _json_path(value: Any, dotted: str) -> Loc:
    path: list[str | int] = []
    for step in dotted.split("."):
        path.append(int(step) if isinstance(value, list) and step.isdecimal() else step)
        value = members(value).get(step, MISSING)  # pyright: ignore[reportUnknownArgumentType]
    return tuple(path)
