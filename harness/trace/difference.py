"""Telling two JSON values apart: the place where they first differ, and both sides of it there.

Rules, expectations of scenarios and reports all tell differences by it.
"""

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from harness.protocol.values import MISSING, Path, show_path

LIMIT: Final = 120
"""So many characters of a value are shown, quotes included."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of two values.

    `path` leads there from the two values; `offset` counts characters where both are texts there,
    else it is None. `expected` and `actual` tell both sides, and are never the same.
    """

    path: Path
    offset: int | None
    expected: str
    actual: str

    def told(self, name: str = "") -> tuple[str, str]:
        """Expected and actual with the place before each; `name` is the path of the two values."""
        return _named(name, self.path, self.expected), _named(name, self.path, self.actual)


def literal(value: Any, limit: int = LIMIT) -> str:
    """A value as JSON on one line, cut at its end to about `limit` characters."""
    if value is MISSING:
        return "nothing"
    if isinstance(value, str):
        return _window(value, 0, limit)
    dumped = _dumped(value)
    if len(dumped) <= limit:
        return dumped
    size = _size(value)
    return f"{dumped[:limit]}…{size}"


def difference(expected: Any, actual: Any, limit: int = LIMIT) -> Difference:
    """The first difference of two values, `limit` characters of each side.

    Order of members does not count, and 1 is not true. Two values that are the same, as nobody
    should ask about, are told as such.
    """
    path: list[str | int] = []
    try:
        while (step := _first_other(expected, actual)) is not None:
            path.append(step)
            expected, actual = _child(expected, step), _child(actual, step)
    except RecursionError:
        pass  # Nested too deep to be compared: told from where we are.
    place = tuple(path)
    if isinstance(expected, str) and isinstance(actual, str):
        return _of_texts(place, expected, actual, limit)
    one, other = literal(expected, limit), literal(actual, limit)
    if one == other:
        # Only values too long to be shown whole can look alike.
        told = _of_texts(place, _dumped(expected), _dumped(actual), limit)
        one, other = told.expected, told.actual
        if one == other:
            other = f"{other}, the same"
    return Difference(place, None, one, other)


def _of_texts(path: Path, expected: str, actual: str, limit: int) -> Difference:
    offset = next(
        (at for at, (one, other) in enumerate(zip(expected, actual, strict=False)) if one != other),
        min(len(expected), len(actual)),
    )
    start = _start(expected, actual, offset, limit)
    one, other = (_window(text, start, limit) for text in (expected, actual))
    if expected == actual:
        return Difference(path, offset, one, f"{other}, the same")
    where = f"first difference at character {offset}"
    if start == 0 and all(_fits(text, limit - 2) for text in (expected, actual)):
        return Difference(path, offset, one, f"{other} ({where})")
    one = f"{one} ({_characters(expected)})"
    return Difference(path, offset, one, f"{other} ({_characters(actual)}; {where})")


def _start(expected: str, actual: str, offset: int, limit: int) -> int:
    """Return where to begin to show two texts: at their beginning if both can be shown whole."""
    if all(_fits(text, limit - 2) for text in (expected, actual)):
        return 0
    start, room = offset, limit // 4
    while start > 0 and (room := room - len(_seen(expected[start - 1]))) >= 0:
        start -= 1
    return start


def _fits(text: str, room: int) -> bool:
    return len(text) <= room and sum(len(_seen(char)) for char in text) <= room


def _characters(text: str) -> str:
    return _counted(len(text), "character")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _window(text: str, start: int, limit: int) -> str:
    """Return a part of a text from a character on, quoted; omissions are marked."""
    shown, room, end = "", limit - 2, start
    while end < len(text):
        piece = _seen(text[end])
        if len(shown) + len(piece) > room:
            break
        shown += piece
        end += 1
    head = f"…{start} more…" if start else ""
    tail = f"…{len(text) - end} more…" if end < len(text) else ""
    return f'{head}"{shown}"{tail}'


def _seen(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    short = json.dumps(char)[1:-1]
    return short if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _dumped(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=_of_another_kind)
    except (TypeError, ValueError, RecursionError):
        return f"a value of type {type(value).__name__} that cannot be shown"
    return "".join(char if char.isprintable() else _seen(char) for char in text)


def _of_another_kind(value: Any) -> str:
    return "nothing" if value is MISSING else repr(value)


def _size(value: Any) -> str:
    if isinstance(value, dict):
        return f" ({_counted(len(cast(dict[Any, Any], value)), 'member')} in all)"
    if isinstance(value, list | tuple):
        return f" ({_counted(len(cast(list[Any], value)), 'element')} in all)"
    return ""


def _first_other(expected: Any, actual: Any) -> str | int | None:
    """The step into the first part that differs; None where the two differ as wholes."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        left, right = cast(dict[Any, Any], expected), cast(dict[Any, Any], actual)
        for key in [*left, *(one for one in right if one not in left)]:
            if not _same(left.get(key, MISSING), right.get(key, MISSING)):
                return str(key)
    elif isinstance(expected, list) and isinstance(actual, list):
        ours, theirs = cast(list[Any], expected), cast(list[Any], actual)
        for index in range(max(len(ours), len(theirs))):
            if not _same(_child(ours, index), _child(theirs, index)):
                return index
    return None


def _child(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return value[step] if step < len(value) else MISSING
    return value.get(step, MISSING)


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON: 1 is not true, and NaN is itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _same(one[key], other[key]) for key in cast(dict[Any, Any], one)
        )
    if isinstance(one, list) and isinstance(other, list):
        ours, theirs = cast(list[Any], one), cast(list[Any], other)
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    return one is other or one == other or (one != one and other != other)


def _named(name: str, path: Path, text: str) -> str:
    inside = show_path(path) if path else ""
    joined = (
        f"{name}{'' if not inside or inside.startswith('[') else '.'}{inside}" if name else inside
    )
    return f"{joined}: {text}" if joined else text
