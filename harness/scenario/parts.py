"""Filling the named parts of a family into its template.

A text that is nothing else stands for the part, whatever it is; a part that is a list takes the
place of that element in a list. Within a longer text the part must be a text, a number, true or
false. `<<name>` stands for the text `<name>`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from harness.scenario.yaml12 import Document, Loc, ScenarioError
from harness.trace.nearest import unknown

_PART = re.compile(r"(<?)<([A-Za-z][A-Za-z0-9_-]*)>")
# More than any scenario needs: parts that hold parts can grow beyond all bounds.
MAX_VALUES = 20_000


@dataclass(frozen=True, slots=True)
class Source:
    """A part's value, and its path in the file."""

    value: Any
    loc: Loc


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one scenario by name."""

    given: dict[str, Source]


def names_in(value: Any) -> Iterator[str]:
    """The parts that a value uses, keys of mappings included."""
    if isinstance(value, str):
        yield from (found[2] for found in _PART.finditer(value) if not found[1])
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from names_in(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from names_in(key)
            yield from names_in(item)


def filled(value: Any, loc: Loc, parts: Parts, document: Document, path: Path) -> Document:
    """A value of the file with all parts in their places. Raises `ScenarioError`."""
    filler = _Filler(parts, document, path)
    made = Document()
    made.value = filler.fill(value, loc, (), made, ())
    return made


class _Filler:
    def __init__(self, parts: Parts, document: Document, path: Path) -> None:
        self._parts = parts
        self._document = document
        self._path = path
        self._left = MAX_VALUES

    def fill(self, value: Any, loc: Loc, out: Loc, made: Document, within: tuple[str, ...]) -> Any:
        """`loc` is where the value is written, `out` where it comes to stand; `within` are the
        parts that led here.
        """
        self._left -= 1
        if self._left < 0:
            self._fail(loc, f"its parts make more than {MAX_VALUES} values; use fewer")
        value, loc, within = self._resolved(value, loc, within)
        made.places[out] = self._document.place(loc)
        if isinstance(value, str):
            return self._text(value, loc, within)
        if isinstance(value, list):
            return self._list(cast("list[Any]", value), loc, out, made, within)
        if isinstance(value, dict):
            return self._mapping(cast("dict[str, Any]", value), loc, out, made, within)
        return value

    def _list(
        self, value: list[Any], loc: Loc, out: Loc, made: Document, within: tuple[str, ...]
    ) -> list[Any]:
        found: list[Any] = []
        for item, at, used in self._elements(value, loc, within):
            found.append(self.fill(item, at, (*out, len(found)), made, used))
        return found

    def _elements(
        self, value: list[Any], loc: Loc, within: tuple[str, ...]
    ) -> Iterator[tuple[Any, Loc, tuple[str, ...]]]:
        """The elements of a list, those of parts that are lists in their places."""
        for index, item in enumerate(value):
            stands, at, used = self._resolved(item, (*loc, index), within)
            if isinstance(stands, list) and used != within:
                yield from self._elements(cast("list[Any]", stands), at, used)
            else:
                yield stands, at, used

    def _resolved(
        self, value: Any, loc: Loc, within: tuple[str, ...]
    ) -> tuple[Any, Loc, tuple[str, ...]]:
        """Return the value behind a name, its place, and the parts that led there."""
        while isinstance(value, str):
            whole = _PART.fullmatch(value)
            if whole is None or whole[1]:
                break
            source = self._source(whole[2], loc, within)
            value, loc, within = source.value, source.loc, (*within, whole[2])
        return value, loc, within

    def _mapping(
        self, value: dict[str, Any], loc: Loc, out: Loc, made: Document, within: tuple[str, ...]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in value.items():
            name = self._text(key, (*loc, key), within)
            if name in found:
                self._fail((*loc, key), f"the key {name!r} again", key=True)
            made.keys[(*out, name)] = self._document.place((*loc, key), key=True)
            found[name] = self.fill(item, (*loc, key), (*out, name), made, within)
        return found

    def _text(self, value: str, loc: Loc, within: tuple[str, ...]) -> str:
        def put(match: re.Match[str]) -> str:
            if match[1]:
                return match[0][1:]
            source = self._source(match[2], loc, within)
            one = self.fill(source.value, source.loc, (), Document(), (*within, match[2]))
            if isinstance(one, bool):
                return str(one).lower()
            if isinstance(one, str | int | float):
                return str(one)
            kind = "a list" if isinstance(one, list) else "a mapping" if one else "nothing"
            return self._fail(
                loc, f"the part <{match[2]}> is {kind}, and stands within a text: make it a text"
            )

        return _PART.sub(put, value)

    def _source(self, name: str, loc: Loc, within: tuple[str, ...]) -> Source:
        if name in within:
            chain = " -> ".join(f"<{one}>" for one in (*within, name))
            self._fail(loc, f"the part <{name}> holds itself: {chain}")
        source = self._parts.given.get(name)
        if source is None:
            advice = f"; write <<{name}> for the text <{name}>"
            self._fail(loc, unknown("part", name, self._parts.given) + advice)
        return cast("Source", source)

    def _fail(self, loc: Loc, message: str, *, key: bool = False) -> Any:
        raise ScenarioError(self._path, self._document.place(loc, key=key), message)
