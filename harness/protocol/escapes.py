"""Foreign text made safe for terminals and files: of a server, a client, a model, a folder's name.

A terminal obeys control characters, shows bidirectional marks by turning the text around, and half
of a surrogate pair has no UTF-8 at all. Each of them becomes an escape in ASCII.
"""

import json
import re
from typing import Any, Final

_NOT_ASCII: Final = re.compile(r"[^ -~]")
_NOT_ASCII_NOR_LINE_BREAK: Final = re.compile(r"[^ -~\n]")


def visible(line: str) -> str:
    """Escape all that is not printable, line breaks too."""
    return line if line.isprintable() else _NOT_ASCII.sub(_as_in_python, line)


def visible_lines(text: str) -> str:
    """Escape all that is not printable but line breaks."""
    return _NOT_ASCII_NOR_LINE_BREAK.sub(_as_in_python, text)


def is_utf8(text: str) -> bool:
    """Return whether a text has a form in UTF-8: half of a surrogate pair has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def json_text(
    value: Any, *, indent: int | None = None, separators: tuple[str, str] | None = None
) -> str:
    """Return the JSON of a value, keys included, that every parser, terminal and file takes.

    Half of a surrogate pair is shown by its escape as text: many parsers reject the JSON escape.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
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
