"""The cursor's place in a line that is being written: its object, at a key or a value."""

from dataclasses import dataclass
from typing import Final

from harness.protocol.values import Path

_SPACE: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class LinePlace:
    """The place after the last character of a text.

    `path` leads to the object whose key is written, or to the value that is written. `begun` is
    what is there of it, with its quote; `keys` are those that the object has already.
    """

    path: Path
    is_key: bool
    begun: str
    keys: tuple[str, ...] = ()


@dataclass(slots=True)
class _Open:
    """An object or array that has not ended: its kind, the key or index that is next or now."""

    is_object: bool
    at: str | int = 0
    wants_key: bool = True
    keys: tuple[str, ...] = ()


def line_place(text: str) -> LinePlace | None:
    """The place after the text, which is the beginning of a JSON object; None where none can be.

    None is also given where nothing can be proposed: after a whole value, or outside the object.
    """
    stack: list[_Open] = []
    position, length = 0, len(text)
    value_ended = False  # a value has just ended: a comma or an end is next
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
            if isinstance(top.at, int):
                top.at += 1
            else:
                top.wants_key = True
            value_ended = False
            position += 1
        elif char == ":":
            position += 1
        else:
            end = _end_of(text, position)
            if end is None:
                return None if value_ended else _here(stack, text[position:])
            if stack and stack[-1].is_object and stack[-1].wants_key:
                top = stack[-1]
                top.at = text[position:end].strip('"')
                top.keys = (*top.keys, top.at)
                top.wants_key = False
            else:
                value_ended = True
            position = end
    if value_ended or not stack:
        return None
    return _here(stack, "")


def _end_of(text: str, start: int) -> int | None:
    """The end of the word or string that begins there, None where it has not ended."""
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


def _here(stack: list[_Open], begun: str) -> LinePlace | None:
    if not stack:
        return None
    above = tuple(level.at for level in stack[:-1])
    top = stack[-1]
    if top.is_object and top.wants_key:
        return LinePlace(above, is_key=True, begun=begun, keys=top.keys)
    return LinePlace((*above, top.at), is_key=False, begun=begun)
