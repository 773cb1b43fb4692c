"""Parser for a strict subset of YAML 1.2, with the place of every value.

Only true, false, null and numbers are special scalars; anchors, aliases, tags, merge keys,
duplicate keys, several documents and files over 8 MiB are rejected.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from harness.errors import UsageError

# A stored case of `harness fuzz` may have several lines of a megabyte.
MAX_BYTES = 8 * 1024 * 1024
# Deeper than generated cases, which are stored as files; less than Python's stack allows.
MAX_DEPTH = 160
MAX_NUMBER_DIGITS = 40

Place = tuple[int, int]
Loc = tuple[str | int, ...]

_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL_SCALARS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


class ScenarioError(UsageError):
    """A scenario file that cannot be used. Its text is `path:line:column: mistake, advice`.

    It is the first mistake of the file; `others` are the later ones, whose number ends the text. In
    a family, `row` describes the scenario's row and column.
    """

    def __init__(
        self,
        path: Path | str,
        place: Place,
        message: str,
        row: str = "",
        others: "tuple[ScenarioError, ...]" = (),
    ) -> None:
        self.path, self.place, self.message = str(path), place, message
        self.row, self.others = row, others
        more = f" ({len(others)} more)" if others else ""
        super().__init__(f"{self.line}{more}")

    @property
    def line(self) -> str:
        """Return `path:line:column: message (row)`, without the count of further mistakes."""
        end = f" ({self.row})" if self.row else ""
        return f"{self.path}:{self.place[0]}:{self.place[1]}: {self.message}{end}"

    def all_mistakes(self) -> "list[ScenarioError]":
        """Return each mistake of the file as an error of its own, in file order."""
        return [ScenarioError(self.path, self.place, self.message, self.row), *self.others]

    def in_row(self, row: str) -> "ScenarioError":
        """Return a copy whose mistakes name a row of a family."""
        return ScenarioError(
            self.path, self.place, self.message, row, tuple(one.in_row(row) for one in self.others)
        )


class Mistakes:
    """Mistakes found so far in one file, without duplicates."""

    def __init__(self, path: Path, document: "Document") -> None:
        self._path = path
        self._document = document
        self._messages: dict[tuple[Place, str], None] = {}

    def add(self, loc: Loc, message: str, *, key: bool = False) -> None:
        """Add a mistake at the value of a path, or at its key."""
        self._messages.setdefault((self._document.place(loc, key=key), message))

    @property
    def error(self) -> ScenarioError | None:
        """Return the first mistake in file order, which holds the others; None without any."""
        if not self._messages:
            return None
        first, *others = (
            ScenarioError(self._path, place, message)
            for place, message in sorted(self._messages, key=lambda mistake: mistake[0])
        )
        return ScenarioError(self._path, first.place, first.message, others=tuple(others))


@dataclass(slots=True)
class Document:
    """Values of a file with their places (1-based line and column).

    `places` maps a path to the place of its value; `keys` to the place of its key.
    """

    value: Any = None
    places: dict[Loc, Place] = field(default_factory=dict[Loc, Place])
    keys: dict[Loc, Place] = field(default_factory=dict[Loc, Place])

    def place(self, loc: Loc, *, key: bool = False) -> Place:
        """Return the place of the longest known part of a path, (1, 1) if none is known.

        Elements that are not keys of the file are skipped: a validator adds names of alternatives.
        """
        known_path: Loc = ()
        for step in loc:
            if (*known_path, step) in self.places:
                known_path = (*known_path, step)
        places = self.keys if key and known_path in self.keys else self.places
        return places.get(known_path, (1, 1))

    def known_part(self, loc: Loc) -> Loc:
        """Return the path without elements that are not keys of the file."""
        known_path: Loc = ()
        for step in loc:
            if (*known_path, step) in self.places:
                known_path = (*known_path, step)
        return known_path


def parse_file(path: Path) -> Document:
    """Read and parse a file. Raises `ScenarioError` if it cannot be read or is not valid."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ScenarioError(path, (1, 1), f"cannot be read: {error.strerror}") from error
    return parse(raw, path)


def parse(raw: bytes, path: Path | str) -> Document:
    """Parse a file's bytes; `path` is for errors. Raises `ScenarioError` if they are not valid."""
    if len(raw) > MAX_BYTES:
        raise ScenarioError(path, (1, 1), f"{len(raw)} bytes; a scenario has at most 8 MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line_begins = before.rfind(b"\n") + 1
        place = (before.count(b"\n") + 1, len(before[line_begins:].decode("utf-8")) + 1)
        message = (
            f"found the byte {raw[error.start]:#04x}, which is not UTF-8 text; save it as UTF-8"
        )
        raise ScenarioError(path, place, message) from error
    try:
        return _DocumentBuilder(path).build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = (error.problem or "broken").replace("'", '"')
        # The mark of a missing token may be beyond the end of the text.
        if mark is not None and text[mark.index : mark.index + 1] == "\t":
            problem = "found a tab where the line is indented; indent with spaces"
        raise ScenarioError(path, place, f"not YAML: {problem}") from error
    except yaml.reader.ReaderError as error:
        before = text[: int(error.position)]
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        message = f"not YAML: the character {error.character!r} is not allowed"
        raise ScenarioError(path, place, message) from error
    except yaml.YAMLError as error:
        first = str(error).splitlines()[0]
        raise ScenarioError(path, (1, 1), f"not YAML: {first}") from error


@dataclass(slots=True)
class _OpenCollection:
    """A mapping or list that is being filled; `key` is that of the next value."""

    loc: Loc
    value: Any
    key: str | None = None


class _DocumentBuilder:
    """Builder of values from parser events, which show marks and rejected features."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._document = Document()
        self._stack: list[_OpenCollection] = []
        self._documents = 0

    def build(self, text: str) -> Document:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        parser = cast("Callable[..., Iterator[Any]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
        for event in parser(text, Loader=loader):
            self._handle_event(event)
        if self._documents == 0:
            self._fail((1, 1), "empty; expected a scenario: a mapping with title, model, client")
        return self._document

    def _handle_event(self, event: Any) -> None:
        mark = event.start_mark
        place = (mark.line + 1, mark.column + 1)
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    self._fail(place, "a second document; a scenario file holds one")
            case yaml.AliasEvent():
                self._fail(place, f"the alias *{event.anchor}; write the value out")
            case yaml.ScalarEvent():
                self._refuse_extras(event, place)
                self._add_scalar(event, place)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._refuse_extras(event, place)
                if len(self._stack) >= MAX_DEPTH:
                    self._fail(place, f"nested more than {MAX_DEPTH} deep")
                value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                self._stack.append(_OpenCollection(self._add_value(value, place), value))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._stack.pop()
            case _:
                pass

    def _refuse_extras(self, event: Any, place: Place) -> None:
        if event.anchor is not None:
            self._fail(place, f"the anchor &{event.anchor}; write the value out where it is used")
        if event.tag is not None:
            self._fail(place, f"the tag {event.tag}; tags are not used in scenarios")

    def _add_scalar(self, event: Any, place: Place) -> None:
        top = self._stack[-1] if self._stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._add_key(top, event.value, place)
            return
        if (
            event.implicit[0]
            and len(event.value) > MAX_NUMBER_DIGITS
            and _INT.fullmatch(event.value)
        ):
            self._fail(place, f"a number with {len(event.value)} digits")
        self._add_value(plain_scalar(event.value) if event.implicit[0] else event.value, place)

    def _add_key(self, top: _OpenCollection, key: str, place: Place) -> None:
        loc = (*top.loc, key)
        if key == "<<":
            self._fail(place, "the merge key <<; write the values out")
        if loc in self._document.keys:
            line = self._document.keys[loc][0]
            self._fail(place, f"the key {key!r} again; it stands in line {line} already")
        top.key = key
        self._document.keys[loc] = place

    def _add_value(self, value: Any, place: Place) -> Loc:
        if not self._stack:
            self._document.value = value
            self._document.places[()] = place
            return ()
        top = self._stack[-1]
        holder: Any = top.value
        if isinstance(holder, dict):
            if top.key is None:
                self._fail(place, "a key that is no text")
            loc: Loc = (*top.loc, str(top.key))
            holder[top.key] = value
            top.key = None
        else:
            loc = (*top.loc, len(holder))
            holder.append(value)
        self._document.places[loc] = place
        return loc

    def _fail(self, place: Place, message: str) -> None:
        raise ScenarioError(self._path, place, message)


# Python does not convert longer ones, and hex digits of bytes may look like a long number.
_MAX_NUMBER_CHARACTERS = 4000


def plain_scalar(text: str) -> Any:
    """Return the value of an unquoted scalar by the YAML 1.2 core schema.

    Hexadecimal and octal numbers, `.inf` and `.nan` are texts. An integer of more than 4,000 digits
    is an infinite float, since Python does not convert it.
    """
    if text in _SPECIAL_SCALARS:
        return _SPECIAL_SCALARS[text]
    if len(text) <= _MAX_NUMBER_CHARACTERS and _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
