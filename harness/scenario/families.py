"""A family of scenarios: one template, and a table whose rows fill its parts in."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from harness.model.strict import Alias, Strict
from harness.protocol.values import obj
from harness.scenario.explain import first_mistake, unknown
from harness.scenario.identity import FAMILY, path_of_row, row_of_path
from harness.scenario.parts import Parts, Source, filled, names_in
from harness.scenario.yaml12 import Document, Loc, ScenarioError, parse_file

Given = dict[Alias, Any]


class Family(Strict):
    """A whole family file.

    `scenario` is the template; `parts` are what every scenario has unless its row, its column or
    its cell gives its own. Each row is a scenario; with `columns`, each row and column together.
    `without` names those that are not made, `row/column`, each with the reason.
    """

    title: str = Field(min_length=1, max_length=200)
    parts: Given = Field(default_factory=dict[str, Any])
    columns: dict[Alias, Given] = Field(default_factory=dict[str, dict[str, Any]])
    rows: dict[Alias, Given] = Field(min_length=1)
    cells: dict[str, Given] = Field(default_factory=dict[str, dict[str, Any]])
    without: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict[str, str])
    scenario: dict[str, Any] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class FamilyFile:
    """A family, its file, and where everything in it stands."""

    path: Path
    family: Family
    document: Document

    def names(self) -> list[str]:
        """Its scenarios, in the order of the table: `row`, or `row/column`."""
        family = self.family
        if not family.columns:
            return list(family.rows)
        pairs = [f"{row}/{column}" for row in family.rows for column in family.columns]
        return [name for name in pairs if name not in family.without]

    def paths(self) -> list[Path]:
        """The path of each scenario, which is no file."""
        return [path_of_row(self.path, name) for name in self.names()]

    def scenario(self, name: str) -> Document:
        """The scenario of that name, each value with its place here. Raises `ScenarioError`."""
        if name not in self.names():
            message = f"{unknown('scenario of this family', name, self.names())}{self._why(name)}"
            raise ScenarioError(self.path, (1, 1), message)
        row, _, column = name.partition("/")
        given = Parts(self._given(row, column, name))
        return filled(self.family.scenario, ("scenario",), given, self.document, self.path)

    def told(self, name: str) -> str:
        """Name one of its scenarios in a mistake: `row model, column next-turn`."""
        row, _, column = name.partition("/")
        return f"row {row}, column {column}" if column else f"row {row}"

    def _why(self, name: str) -> str:
        reason = self.family.without.get(name)
        return f"; it is left out: {reason}" if reason else ""

    def _given(self, row: str, column: str, name: str) -> dict[str, Source]:
        """Each part and where it is written; the nearest counts."""
        family = self.family
        levels: list[tuple[Loc, dict[str, Any]]] = [
            (("parts",), family.parts),
            (("columns", column), family.columns.get(column, {})),
            (("rows", row), family.rows[row]),
            (("cells", name), family.cells.get(name, {})),
        ]
        return {
            part: Source(value, (*loc, part))
            for loc, parts in levels
            for part, value in parts.items()
        }

    def check(self) -> None:
        """Check what the types cannot say. Raises `ScenarioError`."""
        self._check_names()
        self._check_parts()
        for name, path in zip(self.names(), self.paths(), strict=True):
            if path.is_file():
                row, _, column = name.partition("/")
                loc = ("columns", column) if column else ("rows", row)
                self._fail(loc, f"its scenario {name} is the file {path} too; rename one", key=True)

    def _check_names(self) -> None:
        """Cells that the table has."""
        family = self.family
        pairs = {f"{row}/{column}" for row in family.rows for column in family.columns}
        for key, names in (("cells", family.cells), ("without", family.without)):
            for name in names:
                if not family.columns:
                    self._fail((key,), f"{key} is for a table with columns; it has none", key=True)
                if name not in pairs:
                    self._fail((key, name), unknown("row/column", name, pairs), key=True)
        for name in family.cells:
            if name in family.without:
                self._fail(("cells", name), f"{name!r} is left out by without", key=True)
        if not self.names():
            self._fail(("without",), "every scenario is left out", key=True)

    def _check_parts(self) -> None:
        """A part that nothing uses is a misspelt one."""
        used = set(names_in(self.family.scenario))
        for _, _, value in self._all_parts():
            used |= set(names_in(value))
        for loc, name, _ in self._all_parts():
            if name not in used:
                message = unknown("part", name, used)
                self._fail((*loc, name), f"{message}; nothing in the file uses <{name}>", key=True)
        for name in self.names():
            row, _, column = name.partition("/")
            settled = self.family.cells.get(name, {})
            for part in self.family.rows[row]:
                if part in self.family.columns.get(column, {}) and part not in settled:
                    message = f"the column {column} gives the part {part!r} too; give it in cells, "
                    message += "or give one of them another name"
                    self._fail(("rows", row, part), message, key=True)

    def _all_parts(self) -> Iterator[tuple[Loc, str, Any]]:
        family = self.family
        yield from ((("parts",), name, value) for name, value in family.parts.items())
        tables = {"columns": family.columns, "rows": family.rows, "cells": family.cells}
        for key, table in tables.items():
            for one, parts in table.items():
                yield from (((key, one), name, value) for name, value in parts.items())

    def _fail(self, loc: Loc, message: str, *, key: bool = False) -> None:
        raise ScenarioError(self.path, self.document.place(loc, key=key), message)


def load_family(path: Path) -> FamilyFile:
    """Load and check one file; its scenarios are not checked. Raises `ScenarioError`."""
    try:
        found = path.stat()
    except OSError as error:
        raise ScenarioError(path, (1, 1), f"cannot be read: {error.strerror}") from error
    return _loaded(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=64)
def _loaded(path: Path, _changed: int, _size: int) -> FamilyFile:
    """A run reads a family once for each of its scenarios, and parses it once."""
    document = parse_file(path)
    if not obj(document.value):
        message = "expected a mapping with title, rows, scenario; found no mapping"
        raise ScenarioError(path, document.place(()), message)
    try:
        family = Family.model_validate(document.value)
    except ValidationError as error:
        raise first_mistake(error, document, path, Family) from error
    loaded = FamilyFile(path, family, document)
    loaded.check()
    return loaded


def is_row(path: Path) -> bool:
    """Return whether a path is that of a row. Loading the row tells what is wrong with its
    family.
    """
    row = row_of_path(path)
    if row is None:
        return False
    try:
        return row[1] in load_family(row[0]).names()
    except ScenarioError:
        return True


def scenarios_in(path: Path) -> list[Path]:
    """The paths of a family's scenarios, or the file itself where it is one, or cannot be used.

    Whoever then loads the file is told what is wrong with it.
    """
    if not path.name.endswith(FAMILY):
        return [path]
    try:
        return load_family(path).paths()
    except ScenarioError:
        return [path]
