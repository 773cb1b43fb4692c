"""A recorded run shown again: as the terminal's summary, as Markdown, or as a page."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from harness.cli.commands.recorded_runs import find_run
from harness.protocol.spec.loading import load_book
from harness.report.json_form import DISTRIBUTION, to_plain


class RecordedReport:
    """The forms of a recorded run. Raises `UsageError` if it is missing or cannot be read."""

    def __init__(self, word: str) -> None:
        self._report = find_run(word).report

    def text_lines(self) -> Iterator[str]:
        """Return the summary."""
        from harness.report.terminal import summary

        return summary(self._report, load_book())

    def to_plain(self) -> dict[str, Any]:
        """Return the report as builtins."""
        return to_plain(self._report)

    def markdown_lines(self) -> list[str]:
        """Return the Markdown page."""
        from harness.report.markdown import markdown

        return markdown(self._report, load_book(), version(DISTRIBUTION)).splitlines()

    def html(self) -> str:
        """Return the page for a browser, with the conversations whose traces are still there."""
        from harness.report.html.page import run_page
        from harness.report.html.scenario_facts import read_facts

        return run_page(self._report, load_book(), version(DISTRIBUTION), read_facts(self._report))
