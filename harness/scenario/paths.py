"""Dotted paths of a scenario, such as `item.content.0.text`: a number is an index of a list.

`*` in a path is any element of a list: one of them has to have the value.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, cast

from harness.protocol.values import MISSING, show_path
from harness.scenario.yaml12 import Loc
from harness.trace.difference import literal


def members(value: Any) -> dict[str, Any]:
    """The members of an object, or the elements of a list by their indexes; else nothing."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if isinstance(value, list):
        return {str(index): item for index, item in enumerate(cast("list[Any]", value))}
    return {}


def follow(value: Any, dotted: str) -> Any:
    """Return the value at a dotted path, `MISSING` if a step leads nowhere."""
    for step in dotted.split("."):
        value = members(value).get(step, MISSING)
    return value


def fits(value: Any, where: dict[str, Any]) -> bool:
    """Return whether dotted paths in a value have these values."""
    return not _unlike(value, where)


def described(what: str, where: dict[str, Any]) -> str:
    """`item/started where item.type: "plan"`"""
    wanted = " and ".join(f"{path}: {literal(value)}" for path, value in where.items())
    return what + (f" where {wanted}" if wanted else "")


def nearest_of(
    values: Sequence[Any],
    where: dict[str, Any],
    *,
    within: Loc = (),
    but: str = "was taken by an earlier step",
) -> str:
    """Return how many messages came, and where the last of the nearest differs, by JSON path.

    `within` is the path from the message to the values, `but` what is to be said of one that fits.
    "" where none came.
    """
    if not values:
        return ""
    unlike = [_unlike(value, where) for value in values]
    fewest = min(map(len, unlike))
    if not fewest:
        return f"{len(values)} came, and what fits {but}"
    index = max(index for index, paths in enumerate(unlike) if len(paths) == fewest)
    # Of any element the whole list is told.
    path = unlike[index][0].partition(".*")[0]
    place = show_path((*within, *_json_path(values[index], path)))
    found = literal(follow(values[index], path))
    came = "1 came, with" if len(values) == 1 else f"{len(values)} came, the nearest with"
    return f"{came} {place}: {found}"


def nested(where: dict[str, Any]) -> dict[str, Any]:
    """The value that dotted paths describe, with numbers as members of objects."""
    whole: dict[str, Any] = {}
    for dotted, value in where.items():
        *steps, last = dotted.split(".")
        holder: Any = whole
        for step in steps:
            holder = holder.setdefault(step, {}) if isinstance(holder, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(holder, dict):
            holder[last] = deepcopy(value)
    return whole


def with_lists(value: Any, loc: Loc = ()) -> tuple[Any, dict[Loc, Loc]]:
    """The value with a list where all members are numbers; and each path in it with its own path.

    The lists are as short as can be: of `content.3` alone there is one element.
    """
    paths: dict[Loc, Loc] = {}

    def converted(value: Any, new: Loc, old: Loc) -> Any:
        paths[new] = old
        if not isinstance(value, dict):
            return value
        held = cast("dict[str, Any]", value)
        if not held or not all(key.isdecimal() for key in held):
            return {key: converted(one, (*new, key), (*old, key)) for key, one in held.items()}
        keys = sorted(held, key=int)
        return [converted(held[key], (*new, at), (*old, key)) for at, key in enumerate(keys)]

    return converted(value, loc, loc), paths


def _unlike(value: Any, where: dict[str, Any]) -> list[str]:
    """The paths whose values are not as they should be."""
    return [path for path, wanted in where.items() if wanted not in _all_at(value, path)]


def _all_at(value: Any, dotted: str) -> list[Any]:
    """Return the values at a dotted path; with `*`, those in each element."""
    found = [value]
    for step in dotted.split("."):
        if step == "*":
            found = [
                each for one in found if isinstance(one, list) for each in members(one).values()
            ]
        else:
            found = [members(one).get(step, MISSING) for one in found]
    return found


def _json_path(value: Any, dotted: str) -> Loc:
    path: list[str | int] = []
    for step in dotted.split("."):
        path.append(int(step) if isinstance(value, list) and step.isdecimal() else step)
        value = members(value).get(step, MISSING)  # pyright: ignore[reportUnknownArgumentType]
    return tuple(path)
