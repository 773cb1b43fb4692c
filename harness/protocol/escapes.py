"""Foreign text (of servers, clients, models, folder names) made safe for terminals and files.

A terminal obeys control characters and reverses text after bidirectional marks, and half of a
surrogate pair cannot be encoded in UTF-8. Each of them becomes an escape in ASCII.
"""

import json
import re
from typing import Any, Final

_NOT_ASCII: Final = re.compile(r"[^ -~]")
_NOT_ASCII_NOR_LINE_BREAK: Final = re.compile(r"[^ -~\n]")


def visible(line: str) -> str:
    """Return a text with escapes for all characters that are not printable, line breaks too."""
    return line if line.isprintable() else _NOT_ASCII.sub(_as_in_python, line)


def visible_lines(text: str) -> str:
    """Return a text with escapes for all characters that are not printable, except line breaks."""
    return _NOT_ASCII_NOR_LINE_BREAK.sub(_as_in_python, text)


def is_utf8(text: str) -> bool:
    """Return whether a text can be encoded in UTF-8: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def json_text(
    value: Any, *, indent: int | None = None, separators: tuple[str, str] | None = None
) -> str:
    """Return a value as JSON that every parser, terminal and file accepts.

    Half of a surrogate pair becomes the text `\\ud800`, since many parsers reject its JSON escape.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    return visible_json(text)


def visible_json(text: str) -> str:
    """Return a JSON text with the escapes of JSON for characters that are not printable."""
    return _NOT_ASCII_NOR_LINE_BREAK.sub(_as_in_json, text)


def _as_in_python(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else repr(character)[1:-1]


def _as_in_json(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable():
        return character
    if "\ud800" <= character <= "\udfff":
        return json.dumps(repr(character)[1:-1])[1:-1]
    return json.dumps(character)[1:-1]
