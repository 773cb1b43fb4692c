"""The progress of `harness run`: in a terminal in place of pytest's letters, else between them."""

import contextlib
import os
import sys
from collections import deque
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

import pytest

from harness.cli.suite.interruption import Stopping
from harness.play.config import Config
from harness.report.history import FILE, last_seconds
from harness.report.progress.log import progress_path, read_events

if TYPE_CHECKING:
    from harness.report.progress.plain_lines import PlainLines
    from harness.report.progress.run_view import RunView


class LiveProgress:
    """Pytest plugin that shows the events of the run while it plays.

    All processes of the run write their events to one file, which is followed here.
    """

    def __init__(self, pytest_config: pytest.Config, config: Config) -> None:
        stopping: Stopping | None = pytest_config.pluginmanager.get_plugin("harness-stopping")
        if stopping is not None:
            stopping.on_stop = self.stop
        self._pytest = pytest_config
        self._config = config
        self._path, self._offset = progress_path(config.base, config.run), 0
        self._view: RunView | None = None
        self._area: Any = None
        self._plain: PlainLines | None = None
        self._settled: deque[str] = deque()
        self._is_quiet = False

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Show the progress until the last play has ended, before anything is reported."""
        self._start(session)
        try:
            return (yield)
        finally:
            self.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Let pytest print the words of reports again, in its summary."""
        self._is_quiet = False

    def _start(self, session: pytest.Session) -> None:
        from harness.report.progress.plain_lines import PlainLines
        from harness.report.progress.run_view import RunView
        from harness.report.progress.terminal_area import OutputAbove, TerminalArea, can_show_area

        self._view = RunView()
        self._expect(item.nodeid for item in session.items)
        if not can_show_area(1, os.environ):
            self._plain = PlainLines(self._plain_lines, 1, sys.stdout.encoding)
            self._plain.start()
            return
        terminal: Any = self._pytest.pluginmanager.get_plugin("terminalreporter")
        terminal.ensure_newline()
        self._area = TerminalArea(self._view, self._poll, 1, sys.stdout.encoding)
        self._is_quiet = self._pytest.option.verbose <= 0
        self._area.start()
        writer: Any = terminal._tw
        writer._file = OutputAbove(self._area, writer._file)

    def stop(self) -> None:
        """Erase the progress; also from a signal handler, and twice."""
        if self._plain is not None:
            self._plain.stop()
        if self._area is None:
            return
        self._area.stop()
        self._area = None
        terminal: Any = self._pytest.pluginmanager.get_plugin("terminalreporter")
        writer: Any = terminal._tw
        writer._file = writer._file.close()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """Count reports without a letter if the progress is shown instead."""
        status = yield
        return (status[0], "", "") if self._is_quiet else status

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print what went wrong in a play that counts, above the progress or in its next block."""
        if report.when != "call" or self._view is None:
            return
        if self._plain is not None:
            self._settled.append(report.nodeid)
        elif self._area is not None:
            self._area.update()
            for line in self._view.settle(report.nodeid):
                self._area.print(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Look for the earlier durations of the items that the workers have."""
        self._expect(ids)

    def _expect(self, ids: Iterable[str]) -> None:
        if self._view is not None:
            earlier = last_seconds(self._config.base / FILE, self._config.profile.name)
            self._view.expected = {name: earlier[name] for name in ids if name in earlier}

    def _plain_lines(self) -> Iterable[str]:
        from harness.report.progress.plain_lines import SECONDS_BETWEEN_BLOCKS

        assert self._view is not None
        self._poll()
        yield ""  # It ends the line of letters.
        while self._settled:
            for line in self._view.settle(self._settled.popleft()):
                yield line.plain
        yield from self._view.plain_lines(SECONDS_BETWEEN_BLOCKS)

    def _poll(self) -> None:
        with contextlib.suppress(OSError):
            for event, at, offset in read_events(self._path, self._offset):
                self._offset = offset
                if self._view is not None:
                    self._view.feed(event, at)
