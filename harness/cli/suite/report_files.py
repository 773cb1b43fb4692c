"""The files of a run's report: one that cannot be written costs a line, not the verdict."""

import argparse
import contextlib
import os
from collections.abc import Callable, Generator
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.protocol.escapes import json_text, visible
from harness.protocol.spec.loading import load_book
from harness.report.json_form import DISTRIBUTION, to_plain
from harness.report.report_file import write_problem
from harness.report.results.report import Report

STATUS_NOT_WRITTEN = 4
"""Exit status if a report was not written and nothing else is wrong; `harness run` makes it 2."""


def check_report_files(config: pytest.Config) -> None:
    """Raise `UsageError` if a report file could not be written at the end of the run."""
    option = config.option
    for name in ("json", "markdown", "html"):
        path = getattr(option, f"harness_{name}")
        if path == "-":
            raise UsageError(f"--harness-{name} -: pytest prints there; use harness run --{name} -")
        problem = write_problem(path) if path else ""
        if problem:
            raise UsageError(f"--harness-{name} {path}: {problem}")
    path = getattr(config.option, "xmlpath", None)
    problem = write_problem(os.path.expandvars(path), makes_folder=True) if path else ""
    if problem:
        words = [str(word).split("=", 1)[0] for word in config.invocation_params.args]
        typed = next((word for word in words if word.startswith("--junit")), "--junit-xml")
        raise UsageError(f"{typed} {path}: {problem}")


class ReportFiles:
    """Writer of report files; `problems` has a line for each that could not be written."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def write(self, option: str, path: str, text: Callable[[], str]) -> None:
        """Write what `text` returns to a file, or to a pipe, whose reader may close it early."""
        with self.note_problems(option, path), contextlib.suppress(BrokenPipeError):
            Path(path).write_text(text(), encoding="utf-8", errors="backslashreplace")

    def write_report(
        self, report: Report, option: argparse.Namespace, page: Callable[[Report], str], status: int
    ) -> None:
        """Write the requested files of a report; `page` makes its Markdown."""
        if report.shard is not None:
            report.shard.status = status
        if option.harness_json:
            self.write("--json", option.harness_json, lambda: report_json(report, status))
        if option.harness_markdown:
            self.write("--markdown", option.harness_markdown, lambda: page(report))
        if option.harness_html:
            self.write("--html", option.harness_html, lambda: report_html(report))

    @contextlib.contextmanager
    def note_problems(self, option: str, path: str) -> Generator[None]:
        """Turn any error in the block into a line of `problems`."""
        try:
            yield
        except OSError as error:
            self._note(option, path, error.strerror or str(error))
        except Exception as error:  # A defect of ours must not cost the verdict either.
            self._note(option, path, f"the harness broke: {type(error).__name__}: {error}")

    def _note(self, option: str, path: str, reason: str) -> None:
        advice = "the verdict above stands; name a file that can be written"
        self.problems.append(visible(f"{option} {path} was not written: {reason}; {advice}"))


def report_json(report: Report, status: int) -> str:
    """Return the report as the text of a JSON file."""
    # "##[" occurs only within strings; escaped, it is not a command of GitHub's runner.
    return json_text(to_plain(report, status), indent=1).replace("##[", "##\\u005b") + "\n"


def report_html(report: Report) -> str:
    """Return the report as a page for a browser."""
    from harness.report.html.page import run_page  # A run without a page needs no templates.
    from harness.report.html.scenario_facts import read_facts

    return run_page(report, load_book(), version(DISTRIBUTION), read_facts(report))
