"""TOML with the place of every key and value, which the standard library does not give.

`tomllib` parses the text and reports errors; then the text is scanned a second time for the places
alone.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.errors import UsageError

Loc = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'", re.DOTALL
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_REFUSED = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file, `mine.toml:7:3`; line and column from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(slots=True)
class Toml:
    """Plain values, and the place of each key and each value."""

    file: str
    value: dict[str, Any]
    keys: dict[Loc, Where] = field(default_factory=dict[Loc, Where])
    values: dict[Loc, Where] = field(default_factory=dict[Loc, Where])

    def place(self, loc: Loc, *, key: bool = False) -> Where:
        """The place of a path's value, or key; of the longest part of it that the file has."""
        for length in range(len(loc), 0, -1):
            known = loc[:length]
            places = self.keys if key and known in self.keys else self.values
            if known in places:
                return places[known]
        return Where(self.file, 1, 1)


def read_toml(text: str, file: str) -> Toml:
    """Read a text; `file` is its name in places. Raises `UsageError`."""
    try:
        value = tomllib.loads(text)
        walk = _Walk(text, file)
        walk.document()
    except tomllib.TOMLDecodeError as error:
        raise UsageError(_refusal(str(error), text, file)) from error
    except RecursionError:
        raise UsageError(
            f"{Where(file, 1, 1)}: not TOML that can be read: nested too deep"
        ) from None
    return Toml(file, value, walk.keys, walk.values)


def steps_of(key: str) -> tuple[str, ...]:
    """The names in a dotted key as TOML writes it, such as `home."config.toml".model`.

    Raises `ValueError`.
    """
    try:
        value: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{key!r} is no key of TOML: {error}") from error
    steps: list[str] = []
    while isinstance(value, dict):
        ((step, value),) = value.items()  # pyright: ignore[reportUnknownVariableType]
        steps.append(str(step))  # pyright: ignore[reportUnknownArgumentType]
    return tuple(steps)


def dotted(loc: Loc) -> str:
    """A path as a dotted key; a name that is no bare key is quoted."""
    return ".".join(str(step) if _BARE_KEY.fullmatch(str(step)) else f'"{step}"' for step in loc)


def _refusal(message: str, text: str, file: str) -> str:
    found = _REFUSED.search(message)
    line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    if found and found[1]:
        line, column = int(found[1]), int(found[2])
    return f"{Where(file, line, column)}: not TOML: {_REFUSED.sub('', message)}"


class _Walk:
    """Scans a text that is known to be TOML for the places of its keys and values."""

    def __init__(self, text: str, file: str) -> None:
        # tomllib does the same, so that columns agree.
        self._text = text.replace("\r\n", "\n")
        self._file = file
        self._at = 0
        self._lines = [0, *(found.end() for found in re.finditer("\n", self._text))]
        self._elements: dict[Loc, int] = {}
        self.keys: dict[Loc, Where] = {}
        self.values: dict[Loc, Where] = {}

    def document(self) -> None:
        """The whole text: headers, and keys with their values below them."""
        table: Loc = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text.startswith("[[", self._at):
                table = self._header(2)
            elif self._text[self._at] == "[":
                table = self._header(1)
            else:
                self._pair(table)
            self._skip(_BLANK)

    def _header(self, brackets: int) -> Loc:
        here = self._where()
        self._at += brackets
        self._skip(_BLANK)
        loc: Loc = ()
        steps = self._key()
        for number, (step, where) in enumerate(steps, 1):
            loc += (step,)
            self.keys.setdefault(loc, where)
            self.values.setdefault(loc, here)
            if brackets == 2 and number == len(steps):
                self._elements[loc] = self._elements.get(loc, 0) + 1
            if loc in self._elements:
                loc += (self._elements[loc] - 1,)
                self.values.setdefault(loc, here)
        self._skip(_BLANK)
        self._at += brackets
        return loc

    def _pair(self, table: Loc) -> None:
        loc = table
        for step, where in self._key():
            loc = (*loc, step)
            self.keys.setdefault(loc, where)
            # In `a.b = 1` the place of the value of `a` is that of its first key.
            self.values.setdefault(loc, where)
        self._skip(_BLANK)
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(loc)

    def _value(self, loc: Loc) -> None:
        self.values[loc] = self._where()
        match self._text[self._at]:
            case "[":
                count = 0

                def element() -> None:
                    nonlocal count
                    self._value((*loc, count))
                    count += 1

                self._within("]", element)
            case "{":
                self._within("}", lambda: self._pair(loc))
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_SCALAR)

    def _within(self, end: str, one: Callable[[], None]) -> None:
        """The elements between brackets, separated by commas."""
        self._at += 1
        self._skip(_BLANK)
        while self._text[self._at] != end:
            one()
            self._skip(_BLANK)
            if self._text[self._at] == ",":
                self._at += 1
                self._skip(_BLANK)
        self._at += 1

    def _key(self) -> list[tuple[str, Where]]:
        """The names in a dotted key, each with its place."""
        steps: list[tuple[str, Where]] = []
        while True:
            where, begin = self._where(), self._at
            if self._text[begin] in "\"'":
                self._skip(_STRING)
                (step,) = steps_of(self._text[begin : self._at])
            else:
                self._skip(_BARE_KEY)
                step = self._text[begin : self._at]
            steps.append((step, where))
            dot = _DOT.match(self._text, self._at)
            if dot is None:
                return steps
            self._at = dot.end()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _where(self) -> Where:
        line = bisect_right(self._lines, self._at)
        return Where(self._file, line, self._at - self._lines[line - 1] + 1)
