"""Access to untrusted JSON, and paths in it.

The judge reads whatever a server wrote, so every access must survive every shape: each function
returns a typed value or a neutral one, and never raises. A JSON path is a tuple of keys and
indexes, shown as `params.turn.items[0].text`.
"""

import json
import re
from typing import Any, Final, TypeAlias, cast

Path: TypeAlias = tuple[str | int, ...]


class _Missing:
    """The value of a missing member, distinct from null."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


def obj(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    # Without a cast, which costs time: the judge calls this a thousand times in a short trace.
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def arr(value: Any) -> list[Any]:
    """Return the value if it is an array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def dig(value: Any, *path: str) -> Any:
    """Return the member at a path of object keys, `MISSING` if any step is missing."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return MISSING
        value = cast("dict[str, Any]", value)[key]
    return value


def json_type(value: Any) -> str:
    """Return the JSON type of a value, "absent" for `MISSING`."""
    if value is MISSING:
        return "absent"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def text(value: Any) -> str:
    """Return the value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def value_at(value: Any, path: Path) -> Any:
    """Return the value at a path, `MISSING` if any step is missing."""
    for step in path:
        if isinstance(step, int):
            elements = arr(value)
            value = elements[step] if 0 <= step < len(elements) else MISSING
        else:
            value = obj(value).get(step, MISSING)
    return value


_PLAIN: Final = re.compile(r'[^.\[\]"\s]+')
_STEP: Final = re.compile(r'\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\.?([^.\[\]"\s]+)')


def show_path(path: Path) -> str:
    """Return a path as text: `thread.turns[0].status`; the root is `(the value)`."""
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step}]"
        elif not _PLAIN.fullmatch(step):
            words += f"[{json.dumps(step)}]"
        else:
            words += f".{step}" if words else step
    return words or "(the value)"


def read_path(path_text: str) -> Path:
    """Return the path in a text of `show_path`."""
    steps: list[str | int] = []
    for index, quoted, plain in _STEP.findall("" if path_text == "(the value)" else path_text):
        steps.append(int(index) if index else json.loads(quoted) if quoted else plain)
    return tuple(steps)
