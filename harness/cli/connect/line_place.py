"""The cursor's place in a JSON object that is being typed: its path, at a key or a value."""

from dataclasses import dataclass
from typing import Final

from harness.protocol.values import Path

_SPACE: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class LinePlace:
    """The place after the last character of a text.

    `path` leads to the object whose key is typed, or to the value that is typed. `prefix` is the
    part typed so far, with its quote; `keys` are those that the object has already.
    """

    path: Path
    is_key: bool
    prefix: str
    keys: tuple[str, ...] = ()


@dataclass(slots=True)
class _Open:
    """An open object or array: its kind, and the current or next key or index."""

    is_object: bool
    key: str | int = 0
    wants_key: bool = True
    keys: tuple[str, ...] = ()


def line_place(text: str) -> LinePlace | None:
    """Return the place after the text, which begins a JSON object; None if it is not valid JSON.

    Also None if nothing can be proposed: after a complete value, or outside the object.
    """
    stack: list[_Open] = []
    position, length = 0, len(text)
    value_ended = False  # a comma or an end is next
    while position < length:
        char = text[position]
        if char in _SPACE:
            position += 1
        elif char in "{[":
            if value_ended or (stack and stack[-1].is_object and stack[-1].wants_key):
                return None
            stack.append(_Open(char == "{", "" if char == "{" else 0, char == "{"))
            position += 1
        elif char in "}]":
            if not stack:
                return None
            stack.pop()
            value_ended = True
            position += 1
        elif char == ",":
            if not stack:
                return None
            top = stack[-1]
            if isinstance(top.key, int):
                top.key += 1
            else:
                top.wants_key = True
            value_ended = False
            position += 1
        elif char == ":":
            position += 1
        else:
            end = _end_of(text, position)
            if end is None:
                return None if value_ended else _place_of(stack, text[position:])
            if stack and stack[-1].is_object and stack[-1].wants_key:
                top = stack[-1]
                top.key = text[position:end].strip('"')
                top.keys = (*top.keys, top.key)
                top.wants_key = False
            else:
                value_ended = True
            position = end
    if value_ended or not stack:
        return None
    return _place_of(stack, "")


def _end_of(text: str, start: int) -> int | None:
    """Return the end of the word or string that begins at `start`, None if it is unfinished."""
    if text[start] == '"':
        position = start + 1
        while position < len(text):
            if text[position] == "\\":
                position += 1
            elif text[position] == '"':
                return position + 1
            position += 1
        return None
    position = start
    while position < len(text) and text[position] not in "{}[],:" + _SPACE:
        position += 1
    return None if position == len(text) else position


def _place_of(stack: list[_Open], prefix: str) -> LinePlace | None:
    if not stack:
        return None
    above = tuple(level.key for level in stack[:-1])
    top = stack[-1]
    if top.is_object and top.wants_key:
        return LinePlace(above, is_key=True, prefix=prefix, keys=top.keys)
    return LinePlace((*above, top.key), is_key=False, prefix=prefix)
