"""Generated params, made smaller: members and elements left out, long texts cut.

Only requests to which any answer will do are touched: what another one asks is what its session is
about.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any, cast

from harness.protocol.values import obj
from harness.search.fuzz.sessions.turns import Json

# Given a request's body, says by `deliberate` whether its params are wrong by the book.
Mark = Callable[[Json], Json]
Path = tuple[str | int, ...]
# Deeper in what is nested there is mostly more of the same.
_DEPTH = 3
_LONG = 24


def places(document: Json) -> list[tuple[int, Path]]:
    """Return the values that can be smaller: a step's number, from 0, and a path in its params."""
    found_places: list[tuple[int, Path]] = []
    for number, step in enumerate(document["client"]):
        body = obj(obj(step).get("request"))
        if body.get("expect") == "any":
            found_places += [(number, path) for path in _paths(body.get("params"), ())]
    return found_places


def smaller(document: Json, at: int, mark: Mark) -> Json | None:
    """A copy in which one of the `places` is left out, or its long text is cut.

    None where a request that is right would become wrong: that would be another failure.
    """
    candidate = copy.deepcopy(document)
    number, path = places(document)[at]
    step = candidate["client"][number]
    holder: Any = step["request"]["params"]
    for key in path[:-1]:
        holder = holder[key]
    value = holder[path[-1]]
    if isinstance(value, str) and len(value) > _LONG:
        holder[path[-1]] = value[:1]
    else:
        del holder[path[-1]]
    marked = mark(step["request"])
    if "deliberate" in marked and "deliberate" not in step["request"]:
        return None
    step["request"] = marked
    return candidate


def _paths(value: Any, above: Path) -> Iterator[Path]:
    if len(above) == _DEPTH:
        return
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str | int, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    for key, inner_value in inner:
        yield (*above, key)
        yield from _paths(inner_value, (*above, key))
