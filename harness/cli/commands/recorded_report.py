"""Results that were recorded, shown again: as text, as Markdown, as JSON, or as a page.

They are a run, the matrix of `harness matrix --json`, or the results of `harness fuzz --json`.
"""

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from harness.cli.commands.recorded_runs import find_run, object_in
from harness.client.target.run_folders import find_kept_file
from harness.errors import UsageError
from harness.protocol.spec.loading import load_book
from harness.report.json_form import DISTRIBUTION, to_plain
from harness.report.matrix import Column, is_matrix
from harness.report.matrix import from_plain as matrix_from_plain
from harness.report.results.report import Report

_FUZZ_MEMBERS = {"verdict", "seed", "searches", "failures", "fixed", "notes", "interrupted"}


class Recorded(Protocol):
    """The forms of recorded results."""

    def text_lines(self) -> Iterable[str]:
        """Return the summary."""
        ...

    def markdown_lines(self) -> Iterable[str]:
        """Return the Markdown page. Raises `UsageError` if there is none."""
        ...

    def to_plain(self) -> Any:
        """Return the results as builtins."""
        ...

    def html(self) -> str:
        """Return the page for a browser."""
        ...

    def columns(self) -> Iterable[Column]:
        """Return the targets, each for a badge. Raises `UsageError` if there are none."""
        ...


def find_recorded(word: str) -> Recorded:
    """Return results by file or name. Raises `UsageError` if they are missing or unreadable."""
    path = find_kept_file(Path(word))
    plain = object_in(path.read_bytes()) if path.is_file() else {}
    if is_matrix(plain):
        return _RecordedMatrix(plain)
    if plain.keys() >= _FUZZ_MEMBERS:
        return _RecordedFuzz(plain)
    return RecordedRun(find_run(word).report)


class RecordedRun:
    """A report, with the exit status of its run if that is known."""

    def __init__(self, report: Report, status: int | None = None) -> None:
        self._report, self._status = report, status

    def text_lines(self) -> Iterable[str]:
        """Return the summary."""
        from harness.report.terminal import summary

        return summary(self._report, load_book())

    def markdown_lines(self) -> Iterable[str]:
        """Return the Markdown page."""
        from harness.report.markdown import markdown

        return markdown(self._report, load_book(), version(DISTRIBUTION)).splitlines()

    def to_plain(self) -> Any:
        """Return the JSON report as builtins."""
        return to_plain(self._report, self._status)

    def html(self) -> str:
        """Return the page for a browser."""
        from harness.report.html.page import run_page
        from harness.report.html.scenario_facts import read_facts

        facts = read_facts(self._report)
        return run_page(self._report, load_book(), version(DISTRIBUTION), facts)

    def columns(self) -> Iterable[Column]:
        """Return the target, for a badge."""
        return [Column(self._report.target, self._report.target, "", "", {}, report=self._report)]


class _RecordedMatrix:
    def __init__(self, plain: dict[str, Any]) -> None:
        self._plain = plain
        self._matrix = matrix_from_plain(plain)

    def text_lines(self) -> Iterable[str]:
        return self._matrix.text_lines()

    def markdown_lines(self) -> Iterable[str]:
        return self._matrix.markdown_lines()

    def to_plain(self) -> Any:
        return self._plain

    def html(self) -> str:
        from harness.report.html.other_pages import matrix_page

        return matrix_page(self._matrix)

    def columns(self) -> Iterable[Column]:
        return self._matrix.columns


class _RecordedFuzz:
    def __init__(self, plain: dict[str, Any]) -> None:
        self._plain = plain

    def text_lines(self) -> Iterable[str]:
        yield f"fuzz, seed {self._plain['seed']}: {self._plain['verdict']}"
        for failure in self._plain["failures"]:
            yield f"{failure['cause']} ({failure['id']}): {failure['text']}"
            yield from [f"  replay: {failure['replay']}"] if failure["replay"] else []

    def markdown_lines(self) -> Iterable[str]:
        raise UsageError("--markdown: results of harness fuzz have no Markdown page; use --html")

    def to_plain(self) -> Any:
        return self._plain

    def html(self) -> str:
        from harness.report.html.other_pages import fuzz_page

        return fuzz_page(self._plain)

    def columns(self) -> Iterable[Column]:
        raise UsageError("--badges: results of harness fuzz have no badge")
