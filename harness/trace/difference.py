"""The first difference of two JSON values, with both sides in words.

Rules, expectations of scenarios and reports all use it.
"""

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from harness.protocol.values import MISSING, Path, show_path

MAX_SHOWN_CHARACTERS: Final = 120
"""The number of characters shown of a value, quotes included."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of two values.

    `path` leads there from the two values; `offset` is the first character that differs if both
    sides are strings, else None. `expected` and `actual` describe the sides, and always differ.
    """

    path: Path
    offset: int | None
    expected: str
    actual: str

    def describe(self, name: str = "") -> tuple[str, str]:
        """Return both sides as `path: text`; `name` is the path to the two compared values."""
        return _with_path(name, self.path, self.expected), _with_path(name, self.path, self.actual)


def literal(value: Any, limit: int = MAX_SHOWN_CHARACTERS) -> str:
    """Return a value as one line of JSON, cut to about `limit` characters; MISSING is "nothing"."""
    if value is MISSING:
        return "nothing"
    if isinstance(value, str):
        return _window(value, 0, limit)
    dumped = _dump(value)
    if len(dumped) <= limit:
        return dumped
    size = _size(value)
    return f"{dumped[:limit]}…{size}"


def difference(expected: Any, actual: Any, limit: int = MAX_SHOWN_CHARACTERS) -> Difference:
    """Return the first difference of two values, with up to `limit` characters of each side.

    The order of members does not matter, and 1 is not true. Equal values, which no caller should
    pass, are described as the same.
    """
    path: list[str | int] = []
    try:
        while (step := _first_other(expected, actual)) is not None:
            path.append(step)
            expected, actual = _child(expected, step), _child(actual, step)
    except RecursionError:
        pass  # Nested too deep to be compared: describe the values reached so far.
    place = tuple(path)
    if isinstance(expected, str) and isinstance(actual, str):
        return _text_difference(place, expected, actual, limit)
    left, right = literal(expected, limit), literal(actual, limit)
    if left == right:
        # Only shortened values can look alike.
        texts = _text_difference(place, _dump(expected), _dump(actual), limit)
        left, right = texts.expected, texts.actual
        if left == right:
            right = f"{right}, the same"
    return Difference(place, None, left, right)


def _text_difference(path: Path, expected: str, actual: str, limit: int) -> Difference:
    offset = next(
        (
            index
            for index, (left, right) in enumerate(zip(expected, actual, strict=False))
            if left != right
        ),
        min(len(expected), len(actual)),
    )
    start = _window_start(expected, actual, offset, limit)
    left, right = (_window(text, start, limit) for text in (expected, actual))
    if expected == actual:
        return Difference(path, offset, left, f"{right}, the same")
    if offset == 0 and all(_fits(text, limit - 2) for text in (expected, actual)):
        return Difference(path, offset, left, right)  # Whole words that differ from the beginning.
    position = f"first difference at character {offset}"
    if start == 0 and all(_fits(text, limit - 2) for text in (expected, actual)):
        return Difference(path, offset, left, f"{right} ({position})")
    left = f"{left} ({_characters(expected)})"
    return Difference(path, offset, left, f"{right} ({_characters(actual)}; {position})")


def _window_start(expected: str, actual: str, offset: int, limit: int) -> int:
    """Return the first character to show of both texts: 0 if both fit, else one near `offset`."""
    if all(_fits(text, limit - 2) for text in (expected, actual)):
        return 0
    start, room = offset, limit // 4
    while start > 0 and (room := room - len(_escape(expected[start - 1]))) >= 0:
        start -= 1
    return start


def _fits(text: str, room: int) -> bool:
    return len(text) <= room and sum(len(_escape(char)) for char in text) <= room


def _characters(text: str) -> str:
    return _count_of(len(text), "character")


def _count_of(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _window(text: str, start: int, limit: int) -> str:
    """Return about `limit` characters of a text from `start` on, quoted; omissions are marked."""
    quoted, room, end = "", limit - 2, start
    while end < len(text):
        piece = _escape(text[end])
        if len(quoted) + len(piece) > room:
            break
        quoted += piece
        end += 1
    head = f"…{start} more…" if start else ""
    tail = f"…{len(text) - end} more…" if end < len(text) else ""
    return f'{head}"{quoted}"{tail}'


def _escape(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    short = json.dumps(char)[1:-1]
    return short if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _dump(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=_json_default)
    except (TypeError, ValueError, RecursionError):
        return f"a value of type {type(value).__name__} that cannot be shown"
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _json_default(value: Any) -> str:
    return "nothing" if value is MISSING else repr(value)


def _size(value: Any) -> str:
    if isinstance(value, dict):
        return f" ({_count_of(len(cast(dict[Any, Any], value)), 'member')} in all)"
    if isinstance(value, list | tuple):
        return f" ({_count_of(len(cast(list[Any], value)), 'element')} in all)"
    return ""


def _first_other(expected: Any, actual: Any) -> str | int | None:
    """Return the step into the first part that differs; None if the two differ as wholes."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        left, right = cast(dict[Any, Any], expected), cast(dict[Any, Any], actual)
        for key in [*left, *(name for name in right if name not in left)]:
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


def _same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal: 1 is not true, and NaN equals itself."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _same(left[key], right[key]) for key in cast(dict[Any, Any], left)
        )
    if isinstance(left, list) and isinstance(right, list):
        ours, theirs = cast(list[Any], left), cast(list[Any], right)
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return left is right or left == right or (left != left and right != right)


def _with_path(name: str, path: Path, text: str) -> str:
    inside = show_path(path) if path else ""
    joined = (
        f"{name}{'' if not inside or inside.startswith('[') else '.'}{inside}" if name else inside
    )
    return f"{joined}: {text}" if joined else text
