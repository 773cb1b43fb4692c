"""A family of scenarios: one template, and a table whose rows fill its parts in."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from harness.model.strict import Alias, Strict
from harness.protocol.values import obj
from harness.scenario.explain import first_mistake, unknown_name
from harness.scenario.identity import FAMILY, path_of_row, row_of_path
from harness.scenario.parts import Parts, Source, fill_parts, part_names_in
from harness.scenario.yaml12 import Document, Loc, ScenarioError, parse_file

PartValues = dict[Alias, Any]


class Family(Strict):
    """Contents of a family file.

    `scenario` is the template; `parts` are the defaults of parts that rows, columns and cells
    override. Each row is a scenario; with `columns`, each pair of row and column. `without` maps
    the pairs that are left out, as `row/column`, to the reason.
    """

    title: str = Field(min_length=1, max_length=200)
    parts: PartValues = Field(default_factory=dict[str, Any])
    columns: dict[Alias, PartValues] = Field(default_factory=dict[str, dict[str, Any]])
    rows: dict[Alias, PartValues] = Field(min_length=1)
    cells: dict[str, PartValues] = Field(default_factory=dict[str, dict[str, Any]])
    without: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict[str, str])
    scenario: dict[str, Any] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class FamilyFile:
    """A family, its file, and the places of its values."""

    path: Path
    family: Family
    document: Document

    def names(self) -> list[str]:
        """Return the names of its scenarios in table order: `row`, or `row/column`."""
        family = self.family
        if not family.columns:
            return list(family.rows)
        pairs = [f"{row}/{column}" for row in family.rows for column in family.columns]
        return [name for name in pairs if name not in family.without]

    def paths(self) -> list[Path]:
        """Return the path that stands for each scenario; no file exists there."""
        return [path_of_row(self.path, name) for name in self.names()]

    def scenario(self, name: str) -> Document:
        """Return the named scenario, its parts filled in. Raises `ScenarioError` if unknown."""
        if name not in self.names():
            message = unknown_name("scenario of this family", name, self.names())
            message += self._reason_left_out(name)
            raise ScenarioError(self.path, (1, 1), message)
        row, _, column = name.partition("/")
        parts = Parts(self._part_sources(row, column, name))
        return fill_parts(self.family.scenario, ("scenario",), parts, self.document, self.path)

    def describe_row(self, name: str) -> str:
        """Return the words for a scenario in messages: `row model, column next-turn`."""
        row, _, column = name.partition("/")
        return f"row {row}, column {column}" if column else f"row {row}"

    def _reason_left_out(self, name: str) -> str:
        reason = self.family.without.get(name)
        return f"; it is left out: {reason}" if reason else ""

    def _part_sources(self, row: str, column: str, name: str) -> dict[str, Source]:
        """Return each part with its path in the file; a cell overrides row, column and family."""
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
        """Check the rules that types cannot express. Raises `ScenarioError` for a mistake."""
        self._check_names()
        self._check_parts()
        for name, path in zip(self.names(), self.paths(), strict=True):
            if path.is_file():
                row, _, column = name.partition("/")
                loc = ("columns", column) if column else ("rows", row)
                self._fail(loc, f"its scenario {name} is the file {path} too; rename one", key=True)

    def _check_names(self) -> None:
        """Check that `cells` and `without` name cells of the table."""
        family = self.family
        pairs = {f"{row}/{column}" for row in family.rows for column in family.columns}
        for key, names in (("cells", family.cells), ("without", family.without)):
            for name in names:
                if not family.columns:
                    self._fail((key,), f"{key} is for a table with columns; it has none", key=True)
                if name not in pairs:
                    self._fail((key, name), unknown_name("row/column", name, pairs), key=True)
        for name in family.cells:
            if name in family.without:
                self._fail(("cells", name), f"{name!r} is left out by without", key=True)
        if not self.names():
            self._fail(("without",), "every scenario is left out", key=True)

    def _check_parts(self) -> None:
        """Check that every part is used: an unused one is misspelt."""
        used = set(part_names_in(self.family.scenario))
        for _, _, value in self._all_parts():
            used |= set(part_names_in(value))
        for loc, name, _ in self._all_parts():
            if name not in used:
                message = unknown_name("part", name, used)
                self._fail((*loc, name), f"{message}; nothing in the file uses <{name}>", key=True)
        for name in self.names():
            row, _, column = name.partition("/")
            cell = self.family.cells.get(name, {})
            for part in self.family.rows[row]:
                if part in self.family.columns.get(column, {}) and part not in cell:
                    message = f"the column {column} gives the part {part!r} too; give it in cells, "
                    message += "or give one of them another name"
                    self._fail(("rows", row, part), message, key=True)

    def _all_parts(self) -> Iterator[tuple[Loc, str, Any]]:
        family = self.family
        yield from ((("parts",), name, value) for name, value in family.parts.items())
        tables = {"columns": family.columns, "rows": family.rows, "cells": family.cells}
        for key, table in tables.items():
            for entry, parts in table.items():
                yield from (((key, entry), name, value) for name, value in parts.items())

    def _fail(self, loc: Loc, message: str, *, key: bool = False) -> None:
        raise ScenarioError(self.path, self.document.place(loc, key=key), message)


def load_family(path: Path) -> FamilyFile:
    """Load and check a family file, not its scenarios. Raises `ScenarioError` if it is invalid."""
    try:
        status = path.stat()
    except OSError as error:
        raise ScenarioError(path, (1, 1), f"cannot be read: {error.strerror}") from error
    return _load_family(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _load_family(path: Path, _changed: int, _size: int) -> FamilyFile:
    """Parse a family once per version of its file, though a run reads it for each scenario."""
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
    """Return whether a path stands for a scenario of a family.

    True too for a family that cannot be loaded: loading the scenario then raises its error.
    """
    row = row_of_path(path)
    if row is None:
        return False
    try:
        return row[1] in load_family(row[0]).names()
    except ScenarioError:
        return True


def scenario_paths_in(path: Path) -> list[Path]:
    """Return the paths of a family's scenarios; the file itself if it is not a valid family.

    Loading the file then raises the error.
    """
    if not path.name.endswith(FAMILY):
        return [path]
    try:
        return load_family(path).paths()
    except ScenarioError:
        return [path]
