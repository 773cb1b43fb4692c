"""Stopping a pytest session by a signal: its workers, and what was not played."""

import contextlib
import os
import re
from collections.abc import Callable, Collection, Generator, Iterable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from harness.cli.suite.items import RaceItem, ScenarioItem
from harness.errors import UsageError
from harness.judge.verdict import Verdict
from harness.play.interruption import Interrupted, Interruption, Role
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome
from harness.scenario.identity import SUFFIX, file_of
from harness.scenario.race_id import RaceId
from harness.scenario.scenario_names import scenarios_by_name
from harness.search.cluster.connection import Cluster, ClusterLost

P = ParamSpec("P")
R = TypeVar("R")
_TITLE = re.compile(r"^title: *(.*?) *$", re.MULTILINE)


class Stopping:
    """Pytest plugin that stops one session at a signal (`interruption`), after `on_stop`."""

    def __init__(self, config: pytest.Config, base: Path) -> None:
        self._config = config
        self._workers: dict[str, int] = {}
        self._session: pytest.Session | None = None
        self._ids: list[str] = []
        self.on_stop: Callable[[], None] = lambda: None
        self.cluster: Cluster | None = None
        self.interruption = Interruption(base)
        if hasattr(config, "workerinput"):
            self.interruption.role = "worker"
        self.interruption.on_signal = self._on_signal
        self.interruption.make_exception = self._exit
        self.interruption.install()

    @property
    def cause(self) -> str:
        """The name of the signal, or how the cluster was lost, that ended the run; "" for none."""
        return self.interruption.name or (self.cluster.problem if self.cluster is not None else "")

    @property
    def reason(self) -> str:
        """Return the reason for items that were not played."""
        return f"the run was interrupted ({self.cause})"

    def guard(self, play: Callable[P, R]) -> Callable[P, R]:
        """Wrap the play of an item: a signal or a lost cluster skips it and stops the session."""

        def guarded_play(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                with self.interruption.defer_signals():
                    return play(*args, **kwargs)
            except (Interrupted, ClusterLost):
                if self._session is not None:
                    self._session.shouldstop = self.reason
                pytest.skip(f"{Verdict.NOT_EXERCISED}: {self.reason}")

        return guarded_play

    def _exit(self) -> BaseException:
        if self._session is not None:
            # It ends with a summary; see pytest_sessionfinish.
            return pytest.Session.Interrupted(self.reason)
        return pytest.exit.Exception(self.reason, returncode=self.interruption.status)

    def _on_signal(self, number: int) -> None:
        """In the signal handler, stop distributing items, and signal the workers."""
        self.on_stop()
        distributed: Any = self._config.pluginmanager.get_plugin("dsession")
        if distributed is not None:
            distributed.shouldstop = self.reason
            # A worker that ends while it starts is not replaced.
            setattr(distributed, "_max_worker_restart", 0)  # noqa: B010
        for pid in self._workers.values():
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    # --- hooks ----------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, so that it can be stopped."""
        self._session = session
        self.interruption.role = _role(self._config)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """End the run on a signal during collection.

        pytest would report the exception as a failure of the file being read, for `--lf` too.
        """
        report = yield
        if self.interruption.signal and self.interruption.role == "alone":
            raise self._exit()
        return report

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Note the process id of a worker that is ready."""
        # execnet has no public way to the process that it started.
        process = getattr(getattr(node.gateway, "_io", None), "popen", None)
        pid = int(getattr(process, "pid", 0))
        if pid:
            self._workers[node.gateway.id] = pid

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Forget a worker that ended: its process id may soon be reused."""
        self._workers.pop(node.gateway.id, None)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Keep the ids that workers collected: the controller has no items."""
        self._ids = ids

    @pytest.hookimpl
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the exit status of an interrupted run."""
        if self.interruption.signal and not hasattr(self._config, "workerinput"):
            session.exitstatus = self.interruption.status
        elif self.cause:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl
    def pytest_unconfigure(self) -> None:
        """Restore the previous signal handlers."""
        self.interruption.remove()

    # --- what was not played --------------------------------------------------------------------

    def unplayed_outcomes(
        self, scenarios: Collection[str], races: Collection[str]
    ) -> tuple[list[ScenarioOutcome], list[RaceOutcome]]:
        """Return NOT_EXERCISED outcomes for selected items not among these ids of played ones."""
        outcomes: list[ScenarioOutcome] = []
        raced: list[RaceOutcome] = []
        for name, path, action in self._chosen_items():
            if action and name not in races:
                race = RaceOutcome(
                    name,
                    RaceId.parse(name).scenario,
                    path,
                    _title(path),
                    action,
                    Verdict.NOT_EXERCISED,
                )
                race.reason = self.reason
                raced.append(race)
            elif not action and name not in scenarios:
                outcome = ScenarioOutcome(name, path, _title(path), Verdict.NOT_EXERCISED)
                outcome.reason = self.reason
                outcomes.append(outcome)
        return outcomes, raced

    def _chosen_items(self) -> Iterable[tuple[str, str, str]]:
        """Yield id, path and action ("" for none) of all selected items."""
        if self._session is not None:
            for item in self._session.items:
                if isinstance(item, ScenarioItem):
                    yield item.loaded.id, str(item.path), ""
                elif isinstance(item, RaceItem):
                    yield item.name, str(item.path), item.action
        # Ids of tests have colons, those of scenarios have none.
        for name in self._ids:
            if "::" not in name:
                race = RaceId.parse(name)
                yield name, _path_of(race.scenario), race.action


def _path_of(scenario: str) -> str:
    """Return the file of a scenario that a worker collected, by its id."""
    try:
        files = scenarios_by_name(scenario).files
    except UsageError:
        return f"{scenario}{SUFFIX}"
    return str(file_of(files[0]))


def _role(config: pytest.Config) -> Role:
    if hasattr(config, "workerinput"):
        return "worker"
    return "controller" if config.pluginmanager.has_plugin("dsession") else "alone"


def _title(path: str) -> str:
    """Return the title in a scenario's file, "" if it cannot be read."""
    try:
        match = _TITLE.search(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return ""
    return match.group(1).strip("'\"") if match else ""
