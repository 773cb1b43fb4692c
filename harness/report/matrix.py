"""Many runs side by side: a column for each target, a row for each requirement.

The JSON is of format version 1: a change of meaning raises it, a new member does not. It holds the
whole report of each target, so that `harness compare` reads `FILE#TARGET`.
"""

import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from harness.errors import UsageError
from harness.protocol.spec.loading import load_book
from harness.protocol.values import obj
from harness.report import json_form
from harness.report.requirements import judged_requirements
from harness.report.results.report import Report
from harness.trace.nearest import unknown_name

VERSION: Final = 1
KIND: Final = "matrix"
# Separates the file of a matrix from a target in it.
TARGET_MARK: Final = "#"
# Verdicts in the cells of a terminal; in JSON and Markdown they have their names.
_CELLS = {
    "PASS": "ok",
    "KNOWN": "known",
    "NOT_EXERCISED": "-",
    "NOT_APPLICABLE": "n/a",
    "PARTLY": "partly",
    "INFO": "info",
}
_ABSENT = ""
# A problem in a line of text; JSON has all of it.
MAX_PROBLEM_CHARACTERS = 180
_GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """One target. `problem` says why it could not be judged; then `report` may be missing.

    `key` identifies server, suite and profile; `is_stored` is whether an earlier run was used.
    `note` is a line on the run that its reader must know, "" for none.
    """

    name: str
    target: str
    version: str
    profile: str
    commands: dict[str, str]
    key: str = ""
    report: Report | None = None
    problem: str = ""
    is_stored: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        """`GREEN`, `RED`, or `not judged`."""
        if self.report is None or self.problem:
            return "not judged"
        return "RED" if self.report.red else "GREEN"

    def requirements(self) -> dict[str, str]:
        """Return the verdict on each requirement, empty for a target that was not judged."""
        return {} if self.report is None or self.problem else dict(self.report.requirements)

    def summary(self) -> str:
        """Return the verdict with the counts of requirements, or the problem, in one line."""
        if self.report is None or self.problem:
            problem = textwrap.shorten(self.problem, MAX_PROBLEM_CHARACTERS, placeholder=" …")
            return f"{self.verdict}: {problem}"
        counts = judged_requirements(self.report, load_book())
        words = ", ".join(
            f"{count} {name}" for name, count in sorted(counts.counts.items()) if "_" not in name
        )
        return f"{self.verdict}, {counts.judged_count} of {counts.total} requirements ({words})"


@dataclass(slots=True)
class Matrix:
    """The columns in their order; `interrupted` is the name of the signal that ended it, or ""."""

    columns: list[Column] = field(default_factory=list[Column])
    interrupted: str = ""

    def rows(self, *, only_differences: bool) -> dict[str, list[str]]:
        """Return the verdicts of the judged columns by requirement, in the order of the book.

        A difference is one between what was judged, or between offered and not offered.
        """
        judged = [column.requirements() for column in self.judged_columns()]
        rows = {
            requirement.id: [verdicts.get(requirement.id, _ABSENT) for verdicts in judged]
            for requirement in load_book().requirements
        }
        return {
            name: verdicts
            for name, verdicts in rows.items()
            if (_do_differ(verdicts) if only_differences else any(verdicts))
        }

    def judged_columns(self) -> list[Column]:
        """Return the columns that could be judged."""
        return [column for column in self.columns if column.requirements()]

    def to_plain(self) -> dict[str, Any]:
        """Return the matrix as builtins."""
        names = [column.name for column in self.judged_columns()]
        differing = self.rows(only_differences=True)
        titles = {one.id: one.clause.statement for one in load_book().requirements}
        return {
            "version": VERSION,
            "kind": KIND,
            "harness": version(json_form.DISTRIBUTION),
            "interrupted": self.interrupted,
            "targets": [_column_to_plain(column) for column in self.columns],
            "requirements": [
                {
                    "id": name,
                    "statement": titles[name],
                    "differs": name in differing,
                    "verdicts": dict(zip(names, verdicts, strict=True)),
                }
                for name, verdicts in self.rows(only_differences=False).items()
            ],
        }

    def text_lines(self, *, full: bool = False) -> Iterator[str]:
        """Yield a line for each target, and the table with their numbers as its columns."""
        width = max(len(column.name) for column in self.columns)
        numbers = {id(column): str(place) for place, column in enumerate(self.columns, 1)}
        for column in self.columns:
            stored = " (stored)" if column.is_stored else ""
            number = numbers[id(column)]
            yield f"{number:>3}  {column.name:{width}}  {column.summary()}{stored}"
        rows = self.rows(only_differences=not full)
        if rows:
            first = max(len(name) for name in ("requirement", *rows))
            cells = [[_CELLS.get(cell, cell) for cell in verdicts] for verdicts in rows.values()]
            heads = [numbers[id(column)] for column in self.judged_columns()]
            widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
            yield ""
            for name, row in zip(("requirement", *rows), (heads, *cells), strict=True):
                padded = _GAP.join(f"{cell:{wide}}" for cell, wide in zip(row, widths, strict=True))
                yield f"{name:{first}}{_GAP}{padded}".rstrip()
        yield ""
        yield from self._notes()
        yield self.count_line(full=full)

    def markdown_lines(self, *, full: bool = False) -> Iterator[str]:
        """Yield the same as Markdown: a table of the targets, and one of the requirements."""
        yield from ("| target | result |", "|---|---|")
        for column in self.columns:
            summary = " ".join(column.summary().replace("|", "\\|").split())
            yield f"| `{column.name}` | {summary} |"
        rows = self.rows(only_differences=not full)
        if rows:
            names = [f"`{column.name}`" for column in self.judged_columns()]
            yield ""
            yield f"| requirement | {' | '.join(names)} |"
            yield "|---" * (len(names) + 1) + "|"
            for name, verdicts in rows.items():
                yield f"| `{name}` | {' | '.join(verdicts)} |"
        yield ""
        yield from (f"{note}\n" for note in self._notes())
        yield self.count_line(full=full)

    def _notes(self) -> list[str]:
        return list(dict.fromkeys(column.note for column in self.columns if column.note))

    def count_line(self, *, full: bool) -> str:
        """Return how many requirements differ between the columns."""
        differing = len(self.rows(only_differences=True))
        every = len(self.rows(only_differences=False))
        if not every:
            return "no target was judged"
        more = "" if full or differing == every else "; --all shows each"
        return f"{differing} of {every} requirements differ between the targets{more}"


def _do_differ(verdicts: list[str]) -> bool:
    # PARTLY is a PASS as far as it was judged; NOT_EXERCISED says nothing of the server.
    told = {"PASS" if verdict == "PARTLY" else verdict for verdict in verdicts}
    return len(told - {"NOT_EXERCISED", _ABSENT}) > 1


def _column_to_plain(column: Column) -> dict[str, Any]:
    report = column.report
    return {
        "name": column.name,
        "target": column.target,
        "version": column.version,
        "profile": column.profile,
        "commands": column.commands,
        "key": column.key,
        "verdict": column.verdict,
        "problem": column.problem,
        "stored": column.is_stored,
        "note": column.note,
        "report": None if report is None else json_form.to_plain(report),
    }


def from_plain(plain: dict[str, Any]) -> Matrix:
    """Return the matrix of builtins from `to_plain`. Raises `UsageError` for another version."""
    if not is_matrix(plain) or plain.get("version") != VERSION:
        raise UsageError(f"not the JSON of harness matrix, version {VERSION}")
    columns = [
        Column(
            **{name: one[name] for name in ("name", "target", "version", "profile", "commands")},
            report=None if one.get("report") is None else json_form.from_plain(one["report"]),
            problem=one.get("problem", ""),
            is_stored=bool(one.get("stored")),
            note=one.get("note", ""),
        )
        for one in map(obj, plain.get("targets", ()))
    ]
    return Matrix(columns, str(plain.get("interrupted", "")))


def is_matrix(plain: object) -> bool:
    """Return whether a JSON value is a matrix of any version."""
    return obj(plain).get("kind") == KIND


def read_column(path: Path, name: str) -> Report:
    """Return the report of one target in the file of a matrix.

    Raises `OSError`, or `UsageError` if it cannot be read as a matrix or has no such target.
    """
    try:
        plain = obj(json.loads(path.read_text("utf-8")))
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}") from error
    if not is_matrix(plain) or plain.get("version") != VERSION:
        raise UsageError(f"{path}: not the JSON of harness matrix, version {VERSION}")
    columns = {str(obj(one).get("name")): obj(one) for one in plain.get("targets", ())}
    if name not in columns:
        raise UsageError(f"{path}: {unknown_name('target', name, columns)}")
    if columns[name].get("report") is None:
        raise UsageError(f"{path}{TARGET_MARK}{name}: not judged: {columns[name].get('problem')}")
    return json_form.from_plain(columns[name]["report"])
