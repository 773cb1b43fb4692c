"""Shrinking of generated params: members and elements removed, values made simpler.

Only requests that accept any answer are changed; others are the point of their session.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from harness.protocol.values import obj
from harness.search.fuzz.sessions.turns import Json

# Returns a request's body, marked `deliberate` if its params are invalid.
Mark = Callable[[Json], Json]
Path = tuple[str | int, ...]
# Deeper values are not shrunk by themselves; nested ones are unwrapped from outside.
_MAX_DEPTH = 3
_MAX_TEXT_LENGTH = 24
_DROPPED = object()


class Place(NamedTuple):
    """A value that can be smaller: the step's index, the path in its params, and the new value."""

    step: int
    path: Path
    value: Any


def shrinkable_places(document: Json) -> list[Place]:
    """Return each way to shrink a value in params; the best way comes last for each value."""
    found_places: list[Place] = []
    for number, step in enumerate(document["client"]):
        body = obj(obj(step).get("request"))
        if body.get("expect") == "any":
            for path, value in _paths(body.get("params"), ()):
                smaller_values = [*_smaller_values(value), _DROPPED]
                found_places += [Place(number, path, smaller) for smaller in smaller_values]
    return found_places


def shrink_params(document: Json, index: int, mark: Mark) -> Json | None:
    """Return a copy with the `index`-th of `shrinkable_places` applied.

    None if a valid request would become invalid: that would be another failure.
    """
    candidate = copy.deepcopy(document)
    number, path, value = shrinkable_places(document)[index]
    step = candidate["client"][number]
    holder: Any = step["request"]["params"]
    for key in path[:-1]:
        holder = holder[key]
    if value is _DROPPED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = copy.deepcopy(value)
    marked = mark(step["request"])
    if "deliberate" in marked and "deliberate" not in step["request"]:
        return None
    step["request"] = marked
    return candidate


def _smaller_values(value: Any) -> Iterator[Any]:
    """Yield simpler values of the same type, or the only value within; the simplest comes last."""
    if isinstance(value, str) and len(value) > _MAX_TEXT_LENGTH:
        yield value[: len(value) // 2]
        yield value[:1]
    elif isinstance(value, int | float) and not isinstance(value, bool) and value not in (0, 1):
        yield 0
    elif isinstance(value, dict | list) and value:
        inner = _values_in(value)
        if len(inner) == 1 and isinstance(inner[0], dict | list):
            yield inner[0]
        yield type(cast("dict[str, Any] | list[Any]", value))()


def _values_in(value: Any) -> list[Any]:
    is_object = isinstance(value, dict)
    return list(cast(Json, value).values()) if is_object else list(cast("list[Any]", value))


def _paths(value: Any, above: Path) -> Iterator[tuple[Path, Any]]:
    if len(above) == _MAX_DEPTH:
        return
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str | int, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    for key, inner_value in inner:
        yield (*above, key), inner_value
        yield from _paths(inner_value, (*above, key))
