"""The largest paths and lists that a client or a model may send.

A limit that concerns one module alone lives there (`transport.lines`, `model.limits`,
`patch.plan`).
"""

from typing import Any, cast

PATH_LIMIT = 4096
"""Bytes of a path: no system takes a longer one, and resolving it takes quadratic time."""
LIST_LIMIT = 10_000
"""Elements of a list in the params of a request, or in an answer."""
MAX_DEPTH = 100
"""Maximum nesting of a stored JSON value: no reader takes a record of more than 200 levels."""
_DEPTH = 4


class LimitExceeded(ValueError):
    """A path or list is too long; str() names it and its limit."""


def check_path(path: str) -> None:
    """Raise LimitExceeded for a path that no system takes."""
    if len(path) > PATH_LIMIT or len(path.encode("utf-8", "replace")) > PATH_LIMIT:
        raise LimitExceeded(f"a path has at most {PATH_LIMIT} bytes")


def check_lists(value: Any, field: str = "params", depth: int = _DEPTH) -> None:
    """Raise LimitExceeded if a list, up to `depth` objects deep, has more than LIST_LIMIT elements.

    Called before the validation: a million wrong elements take minutes to validate, and gigabytes
    for the errors.
    """
    if isinstance(value, list):
        if len(cast("list[Any]", value)) > LIST_LIMIT:
            raise LimitExceeded(f"{field}: has more than {LIST_LIMIT:,} elements")
    elif isinstance(value, dict) and depth:
        for name, inner in cast("dict[str, Any]", value).items():
            check_lists(inner, name, depth - 1)


def is_too_deep(value: Any, levels: int = MAX_DEPTH) -> bool:
    """Return whether a JSON value nests arrays and objects more than `levels` deep."""
    if isinstance(value, dict):
        inner = list(cast("dict[str, Any]", value).values())
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    else:
        return False
    return levels == 0 or any(is_too_deep(one, levels - 1) for one in inner)
