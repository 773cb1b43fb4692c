"""TOML with the place of every key and value, which the standard library does not give.

`tomllib` parses the text and reports errors; then the text is scanned a second time for the places
alone.
"""

import json
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
_ERROR_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file, `mine.toml:7:3`; line and column from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(slots=True)
class Toml:
    """Plain values, and the place of each key and each value.

    `ranges` are words on the releases for which the value at a place holds.
    """

    file: str
    value: dict[str, Any]
    keys: dict[Loc, Place] = field(default_factory=dict[Loc, Place])
    values: dict[Loc, Place] = field(default_factory=dict[Loc, Place])
    ranges: dict[Place, str] = field(default_factory=dict[Place, str])

    def place(self, loc: Loc, *, key: bool = False) -> Place:
        """Return the place of the value, or key, at the longest part of a path that exists."""
        for length in range(len(loc), 0, -1):
            path = loc[:length]
            places = self.keys if key and path in self.keys else self.values
            if path in places:
                return places[path]
        return Place(self.file, 1, 1)


def read_toml(text: str, file: str) -> Toml:
    """Parse TOML; `file` names it in places. Raises `UsageError` if it is not TOML."""
    try:
        value = tomllib.loads(text)
        walk = _PlaceScanner(text, file)
        walk.scan_document()
    except tomllib.TOMLDecodeError as error:
        raise UsageError(_describe_error(str(error), text, file)) from error
    except RecursionError:
        raise UsageError(
            f"{Place(file, 1, 1)}: not TOML that can be read: nested too deep"
        ) from None
    return Toml(file, value, walk.keys, walk.values)


def steps_of(key: str) -> tuple[str, ...]:
    """Return the names in a dotted key as TOML writes it, such as `home."config.toml".model`.

    Raises `ValueError` if it is not a key of TOML.
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


def dotted_key(loc: Loc) -> str:
    """Return a path as a dotted key; a name that is not a bare key is quoted."""
    names = map(str, loc)
    return ".".join(
        name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
        for name in names
    )


def _describe_error(message: str, text: str, file: str) -> str:
    position = _ERROR_POSITION.search(message)
    line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    if position and position[1]:
        line, column = int(position[1]), int(position[2])
    return f"{Place(file, line, column)}: not TOML: {_ERROR_POSITION.sub('', message)}"


class _PlaceScanner:
    """Scanner of a text that is known to be TOML, for the places of its keys and values."""

    def __init__(self, text: str, file: str) -> None:
        # Like tomllib, so that columns agree.
        self._text = text.replace("\r\n", "\n")
        self._file = file
        self._position = 0
        self._lines = [0, *(newline.end() for newline in re.finditer("\n", self._text))]
        self._elements: dict[Loc, int] = {}
        self.keys: dict[Loc, Place] = {}
        self.values: dict[Loc, Place] = {}

    def scan_document(self) -> None:
        """Scan the whole text: headers, and keys with their values below them."""
        table: Loc = ()
        self._skip(_BLANK)
        while self._position < len(self._text):
            if self._text.startswith("[[", self._position):
                table = self._scan_header(2)
            elif self._text[self._position] == "[":
                table = self._scan_header(1)
            else:
                self._scan_pair(table)
            self._skip(_BLANK)

    def _scan_header(self, brackets: int) -> Loc:
        header_place = self._current_place()
        self._position += brackets
        self._skip(_BLANK)
        loc: Loc = ()
        steps = self._scan_key()
        for number, (step, place) in enumerate(steps, 1):
            loc += (step,)
            self.keys.setdefault(loc, place)
            self.values.setdefault(loc, header_place)
            if brackets == 2 and number == len(steps):
                self._elements[loc] = self._elements.get(loc, 0) + 1
            if loc in self._elements:
                loc += (self._elements[loc] - 1,)
                self.values.setdefault(loc, header_place)
        self._skip(_BLANK)
        self._position += brackets
        return loc

    def _scan_pair(self, table: Loc) -> None:
        loc = table
        for step, place in self._scan_key():
            loc = (*loc, step)
            self.keys.setdefault(loc, place)
            # In `a.b = 1` the place of the value of `a` is that of its first key.
            self.values.setdefault(loc, place)
        self._skip(_BLANK)
        self._position += 1  # the equals sign
        self._skip(_BLANK)
        self._scan_value(loc)

    def _scan_value(self, loc: Loc) -> None:
        self.values[loc] = self._current_place()
        match self._text[self._position]:
            case "[":
                count = 0

                def element() -> None:
                    nonlocal count
                    self._scan_value((*loc, count))
                    count += 1

                self._scan_elements("]", element)
            case "{":
                self._scan_elements("}", lambda: self._scan_pair(loc))
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_SCALAR)

    def _scan_elements(self, end: str, scan_element: Callable[[], None]) -> None:
        """Scan the elements between brackets, separated by commas."""
        self._position += 1
        self._skip(_BLANK)
        while self._text[self._position] != end:
            scan_element()
            self._skip(_BLANK)
            if self._text[self._position] == ",":
                self._position += 1
                self._skip(_BLANK)
        self._position += 1

    def _scan_key(self) -> list[tuple[str, Place]]:
        """Return the names in a dotted key, each with its place."""
        steps: list[tuple[str, Place]] = []
        while True:
            place, begin = self._current_place(), self._position
            if self._text[begin] in "\"'":
                self._skip(_STRING)
                (step,) = steps_of(self._text[begin : self._position])
            else:
                self._skip(_BARE_KEY)
                step = self._text[begin : self._position]
            steps.append((step, place))
            dot = _DOT.match(self._text, self._position)
            if dot is None:
                return steps
            self._position = dot.end()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._position)
        self._position = match.end() if match else self._position

    def _current_place(self) -> Place:
        line = bisect_right(self._lines, self._position)
        return Place(self._file, line, self._position - self._lines[line - 1] + 1)
