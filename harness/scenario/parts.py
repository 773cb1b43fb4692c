"""Replacement of the named parts of a family's template.

A text that is only `<name>` is replaced by the part, of any type; a part that is a list replaces
that element of a list by its own elements. Within a longer text the part must be a text, a number,
true or false. `<<name>` is the text `<name>`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from harness.scenario.yaml12 import Document, Loc, ScenarioError
from harness.trace.nearest import unknown_name

_PART = re.compile(r"(<?)<([A-Za-z][A-Za-z0-9_-]*)>")
# More than any scenario needs; nested parts can grow exponentially.
MAX_VALUES = 20_000


@dataclass(frozen=True, slots=True)
class Source:
    """A part's value, and its path in the file."""

    value: Any
    loc: Loc


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one scenario by name."""

    sources: dict[str, Source]


def part_names_in(value: Any) -> Iterator[str]:
    """Yield the part names that a value uses, also in keys of mappings."""
    if isinstance(value, str):
        yield from (match[2] for match in _PART.finditer(value) if not match[1])
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from part_names_in(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from part_names_in(key)
            yield from part_names_in(item)


def fill_parts(value: Any, loc: Loc, parts: Parts, document: Document, path: Path) -> Document:
    """Return the template with all parts replaced. Raises `ScenarioError` for a wrong part."""
    filler = _PartFiller(parts, document, path)
    result = Document()
    result.value = filler.fill(value, loc, (), result, ())
    return result


class _PartFiller:
    def __init__(self, parts: Parts, document: Document, path: Path) -> None:
        self._parts = parts
        self._document = document
        self._path = path
        self._values_left = MAX_VALUES

    def fill(
        self, value: Any, loc: Loc, target: Loc, result: Document, within: tuple[str, ...]
    ) -> Any:
        """Return the value at `loc` of the file, filled, and record its place under `target`.

        `within` are the names of the parts that enclose the value.
        """
        self._values_left -= 1
        if self._values_left < 0:
            self._fail(loc, f"its parts make more than {MAX_VALUES} values; use fewer")
        value, loc, within = self._resolve(value, loc, within)
        result.places[target] = self._document.place(loc)
        if isinstance(value, str):
            return self._fill_text(value, loc, within)
        if isinstance(value, list):
            return self._fill_list(cast("list[Any]", value), loc, target, result, within)
        if isinstance(value, dict):
            return self._fill_mapping(cast("dict[str, Any]", value), loc, target, result, within)
        return value

    def _fill_list(
        self, value: list[Any], loc: Loc, target: Loc, result: Document, within: tuple[str, ...]
    ) -> list[Any]:
        elements: list[Any] = []
        for item, item_loc, item_parts in self._elements(value, loc, within):
            elements.append(self.fill(item, item_loc, (*target, len(elements)), result, item_parts))
        return elements

    def _elements(
        self, value: list[Any], loc: Loc, within: tuple[str, ...]
    ) -> Iterator[tuple[Any, Loc, tuple[str, ...]]]:
        """Yield a list's elements; a part that is a list yields its own elements."""
        for index, item in enumerate(value):
            resolved, item_loc, item_parts = self._resolve(item, (*loc, index), within)
            if isinstance(resolved, list) and item_parts != within:
                yield from self._elements(cast("list[Any]", resolved), item_loc, item_parts)
            else:
                yield resolved, item_loc, item_parts

    def _resolve(
        self, value: Any, loc: Loc, within: tuple[str, ...]
    ) -> tuple[Any, Loc, tuple[str, ...]]:
        """Return the value of a `<name>` (else `value`), its place and its enclosing parts."""
        while isinstance(value, str):
            match = _PART.fullmatch(value)
            if match is None or match[1]:
                break
            source = self._source(match[2], loc, within)
            value, loc, within = source.value, source.loc, (*within, match[2])
        return value, loc, within

    def _fill_mapping(
        self,
        value: dict[str, Any],
        loc: Loc,
        target: Loc,
        result: Document,
        within: tuple[str, ...],
    ) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, item in value.items():
            name = self._fill_text(key, (*loc, key), within)
            if name in members:
                self._fail((*loc, key), f"the key {name!r} again", key=True)
            result.keys[(*target, name)] = self._document.place((*loc, key), key=True)
            members[name] = self.fill(item, (*loc, key), (*target, name), result, within)
        return members

    def _fill_text(self, value: str, loc: Loc, within: tuple[str, ...]) -> str:
        def put(match: re.Match[str]) -> str:
            if match[1]:
                return match[0][1:]
            source = self._source(match[2], loc, within)
            filled = self.fill(source.value, source.loc, (), Document(), (*within, match[2]))
            if isinstance(filled, bool):
                return str(filled).lower()
            if isinstance(filled, str | int | float):
                return str(filled)
            kind = "a list" if isinstance(filled, list) else "a mapping" if filled else "nothing"
            return self._fail(
                loc, f"the part <{match[2]}> is {kind}, and stands within a text: make it a text"
            )

        return _PART.sub(put, value)

    def _source(self, name: str, loc: Loc, within: tuple[str, ...]) -> Source:
        if name in within:
            chain = " -> ".join(f"<{part}>" for part in (*within, name))
            self._fail(loc, f"the part <{name}> holds itself: {chain}")
        source = self._parts.sources.get(name)
        if source is None:
            advice = f"; write <<{name}> for the text <{name}>"
            self._fail(loc, unknown_name("part", name, self._parts.sources) + advice)
        return cast("Source", source)

    def _fail(self, loc: Loc, message: str, *, key: bool = False) -> Any:
        raise ScenarioError(self._path, self._document.place(loc, key=key), message)
