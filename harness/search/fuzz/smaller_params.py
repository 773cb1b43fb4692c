"""Shrinking of generated params: members and elements left out, long texts cut.

Only requests that accept any answer are changed; others are the point of their session.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any, cast

from harness.protocol.values import obj
from harness.search.fuzz.sessions.turns import Json

# Marks a request's body as `deliberate` if its params are invalid by the book.
Mark = Callable[[Json], Json]
Path = tuple[str | int, ...]
# Deeper values are mostly more of the same.
_MAX_DEPTH = 3
_MAX_TEXT_LENGTH = 24


def shrinkable_places(document: Json) -> list[tuple[int, Path]]:
    """Return the values that can be shrunk: a step's index, and a path in its params."""
    found_places: list[tuple[int, Path]] = []
    for number, step in enumerate(document["client"]):
        body = obj(obj(step).get("request"))
        if body.get("expect") == "any":
            found_places += [(number, path) for path in _paths(body.get("params"), ())]
    return found_places


def shrink_params(document: Json, index: int, mark: Mark) -> Json | None:
    """Return a copy in which one of the places is left out, or its long text is cut.

    None if a valid request would become invalid: that would be another failure.
    """
    candidate = copy.deepcopy(document)
    number, path = shrinkable_places(document)[index]
    step = candidate["client"][number]
    holder: Any = step["request"]["params"]
    for key in path[:-1]:
        holder = holder[key]
    value = holder[path[-1]]
    if isinstance(value, str) and len(value) > _MAX_TEXT_LENGTH:
        holder[path[-1]] = value[:1]
    else:
        del holder[path[-1]]
    marked = mark(step["request"])
    if "deliberate" in marked and "deliberate" not in step["request"]:
        return None
    step["request"] = marked
    return candidate


def _paths(value: Any, above: Path) -> Iterator[Path]:
    if len(above) == _MAX_DEPTH:
        return
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str | int, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    for key, inner_value in inner:
        yield (*above, key)
        yield from _paths(inner_value, (*above, key))
