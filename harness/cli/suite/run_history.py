"""The records of a run: its report beside the traces, its progress, the history."""

import contextlib
import os
from dataclasses import replace
from typing import Any

import pytest

from harness.client.target.run_folders import HISTORY, remove_old_runs
from harness.play.config import Config
from harness.protocol.escapes import json_text, visible
from harness.report.history import FILE, HistoryError, add_run
from harness.report.json_form import to_plain
from harness.report.progress.events import RunEnded, RunStarted
from harness.report.progress.log import ProgressLog, progress_path, remove_old_logs
from harness.report.results.report import Report
from harness.report.terminal import verdict_words

HISTORY_VARIABLE = "HARNESS_HISTORY"
"""`off` in this environment variable keeps runs out of the SQLite history."""


class RunHistory:
    """Pytest plugin that records a run while it plays and when it has ended.

    `config` is the run's configuration with its progress log. None of its troubles changes a
    verdict.
    """

    def __init__(self, pytest_config: pytest.Config, config: Config, *, is_worker: bool) -> None:
        self._progress = ProgressLog(progress_path(config.base, config.run))
        self.config = replace(config, progress=self._progress)
        self._is_worker = is_worker
        self._is_begun = False
        self._problem = ""
        pytest_config.add_cleanup(self._progress.close)
        pytest_config.pluginmanager.register(self, "harness-history")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Write that the run begins; with workers, that is when they know the scenarios."""
        is_controller = session.config.pluginmanager.hasplugin("dsession")
        if not (self._is_worker or is_controller or session.config.option.collectonly):
            self._begin(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Write that the run begins."""
        self._begin(len(ids))

    def _begin(self, total: int) -> None:
        if self._is_begun:
            return
        self._is_begun = True
        remove_old_logs(self.config.base)
        profile = self.config.profile
        self._progress.write(
            RunStarted(
                run=self.config.run,
                target=profile.name,
                command=visible(" ".join(profile.command)),
                pid=os.getpid(),
                total=total,
            )
        )

    def end(self, report: Report | None, status: int) -> None:
        """Write that the run has ended, and keep its report, if any."""
        if report is not None:
            keep_report(report, self.config, status)
            if os.environ.get(HISTORY_VARIABLE) != "off":
                try:
                    add_run(self.config.base / FILE, self.config.run, report)
                except HistoryError as error:
                    self._problem = visible(str(error))
        if self._is_begun:
            words = verdict_words(report) if report is not None else "no verdict"
            self._progress.write(RunEnded(verdict=words, status=status))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print why the history was not written."""
        if self._problem:
            terminalreporter.write_line(self._problem)


def keep_report(report: Report, config: Config, status: int) -> None:
    """Write the report of this run beside its traces, and delete the oldest runs."""
    folder = config.base / HISTORY / config.run
    text = json_text(to_plain(report, status), separators=(",", ":"))
    # A full disk must not change the verdict on the server.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(text + "\n", encoding="utf-8")
        remove_old_runs(config.base)
