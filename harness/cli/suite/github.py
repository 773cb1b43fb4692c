"""`harness run` in a job of GitHub Actions: a summary of the job, and annotations.

The texts are in report.markdown and report.github. Other pytest runs keep their own output and
annotations.
"""

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from harness.report.github import annotations, pause_command, resume_command
from harness.report.results.report import Report

ACTIONS: Final = "GITHUB_ACTIONS"
SUMMARY: Final = "GITHUB_STEP_SUMMARY"
WORKSPACE: Final = "GITHUB_WORKSPACE"


def in_actions(environment: Mapping[str, str]) -> bool:
    """Return whether this is a step of a job of GitHub Actions."""
    return environment.get(ACTIONS, "").lower() == "true"


class GithubStep:
    """Pytest plugin of a run that is a step of a job.

    `report` returns the report at the end of the run, None if there is none; `page` returns its
    summary as Markdown.
    """

    def __init__(
        self,
        config: pytest.Config,
        report: Callable[[], Report | None],
        page: Callable[[Report], str],
    ) -> None:
        self._config = config
        self._report = report
        self._page = page
        self._token = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Pause the runner's commands: a server's output must not contain any."""
        self._token = secrets.token_hex(16)
        self._print(pause_command(self._token))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Resume the runner's commands, print the annotations and append the job's summary."""
        if not self._token:
            return
        self._print(resume_command(self._token))
        self._token = ""
        report = self._report()
        if report is None:
            return
        workspace = Path(os.environ.get(WORKSPACE) or Path.cwd())
        for line in annotations(report, workspace):
            self._print(line)
        summary = os.environ.get(SUMMARY, "")
        if summary:
            self._append(Path(summary), self._page(report))

    def _append(self, path: Path, page: str) -> None:
        try:
            # Earlier commands of the step may have written to it.
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"\n{page}")
        except OSError as error:
            self._print(f"the summary of the job was not written: {error.strerror}")

    def _print(self, line: str) -> None:
        terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(line)
            terminal.flush()
