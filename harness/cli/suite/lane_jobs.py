"""The items of a pytest session as jobs of lanes (`harness.play.lanes`)."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.cli.suite.items import RaceItem, ScenarioItem
from harness.cli.suite.play_events import report_play
from harness.cli.suite.resuming import Resuming
from harness.play.config import Config
from harness.play.interruption import Interruption
from harness.play.knowledge import Knowledge
from harness.play.lanes import Job, Lanes, LaneWaits, Outcome
from harness.play.session.answer_times import slow_note
from harness.play.trouble import describe_trouble
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome, seconds_of
from harness.report.results.server_starts import ServerStart
from harness.scenario.loader import Loaded
from harness.scenario.model import Action
from harness.scenario.race_id import RaceId
from harness.search.cluster.connection import Cluster
from harness.search.cluster.session import ClusterSession

PlayScenario = Callable[[WorkerSession, Loaded, bool, ScenarioOutcome | None], ScenarioOutcome]


class Laning:
    """Player of the items of one process, on lanes. `play` plays one scenario in a session.

    `lanes` is the number of lanes, 0 to choose it by the processors. A `cluster` plays in place of
    this machine, with a lane for each of its slots if `lanes` is 0. Items that are `resuming` have
    their outcomes.
    """

    def __init__(
        self,
        pytest_config: pytest.Config,
        config: Config,
        interruption: Interruption,
        *,
        worker: str,
        lanes: int,
        play: PlayScenario,
        resuming: Resuming,
        cluster: Cluster | None = None,
    ) -> None:
        self._cluster = cluster
        self._resuming = resuming
        self._pytest = pytest_config
        self._config = config
        self._worker = worker
        self._play = play
        self._knowledge = Knowledge(config.profile)
        self._items: list[pytest.Item] = []
        # Each free lane goes through all jobs to come.
        self._jobs: dict[str, Job] = {}
        self._slow_note: str | None = None
        self._lanes = Lanes(
            lanes or (len(cluster.slots) if cluster is not None else 0),
            self._session,
            self._upcoming_jobs,
            interruption,
            never_came=self._knowledge.silences.never_came,
            # A run that stops at a failure does not wait for later ones, and one with a deadline
            # confirms its failures while there is time.
            confirms_ahead=not pytest_config.option.maxfail and config.plays.deadline is None,
        )

    @property
    def note(self) -> str:
        """Return notes on a slow server and on scenarios played again alone, "" without any."""
        replayed = self._lanes.replayed
        words = "scenario(s) that failed beside others were played again alone, and count as then"
        of_lanes = f"lanes: {replayed} {words}" if replayed else ""
        return "\n".join(filter(None, (self._slow_note, of_lanes, self._resuming.note)))

    @property
    def findings(self) -> list[Finding]:
        """Return the findings so far that belong to no scenario."""
        return [finding for session in self._lanes.sessions for finding in session.findings]

    @property
    def starts(self) -> list[ServerStart]:
        """Return the starts of server processes, with their reasons."""
        return [start for session in self._lanes.sessions for start in session.starts]

    def plan(self, items: list[pytest.Item]) -> None:
        """Set the items that will be played, in order."""
        self._items = items

    def play_scenario(self, loaded: Loaded) -> ScenarioOutcome:
        """Play a scenario and return its outcome. Raises `Interrupted` at a signal."""
        outcome = self._outcome(self._scenario_job(loaded))
        if not isinstance(outcome, ScenarioOutcome):
            raise TypeError(f"{loaded.id}: not the outcome of a scenario")
        self._note_speed(outcome)
        return outcome

    def _note_speed(self, outcome: ScenarioOutcome) -> None:
        """After the first scenario print how long the run will take, if the server is slow."""
        speed = self._lanes.first.answer_seconds
        if self._slow_note is not None or not speed:
            return
        self._slow_note = slow_note(
            speed,
            scale=self._config.scale,
            scenario_seconds=seconds_of(outcome),
            scenarios=len(self._items),
            lanes=self._lanes.number,
        )
        terminal: Any = self._pytest.pluginmanager.get_plugin("terminalreporter")
        if self._slow_note and terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(self._slow_note)

    def play_race(self, loaded: Loaded, action: Action, only: str = "") -> RaceOutcome:
        """Play a race and return its outcome. Raises `Interrupted` at a signal."""
        outcome = self._outcome(self._race_job(loaded, action, only))
        if not isinstance(outcome, RaceOutcome):
            raise TypeError(f"{loaded.id}: not the outcome of a race")
        return outcome

    def _outcome(self, job: Job) -> Outcome:
        return self._resuming.outcomes.get(job.name) or self._lanes.outcome(job)

    def close(self) -> list[Finding]:
        """End the servers and return the findings outside any scenario."""
        self._lanes.stop()
        return [finding for session in self._lanes.sessions for finding in self._close(session)]

    def _close(self, session: WorkerSession) -> list[Finding]:
        try:
            return session.close()
        except Exception as error:
            message = f"ending the servers failed: {describe_trouble(error, self._config.base)}"
            return [*session.findings, Finding("harness.trouble", message)]

    def _session(self, number: int, waits: LaneWaits) -> WorkerSession:
        if self._cluster is not None:
            slot = (number - 1) % len(self._cluster.slots)
            return ClusterSession(self._config, slot, self._cluster, waits)
        name = self._worker if number == 1 else f"{self._worker}-{number}"
        return WorkerSession(
            self._config, worker=name, interruption=waits, knowledge=self._knowledge
        )

    def _upcoming_jobs(self) -> Iterator[Job]:
        for item in self._coming_items():
            if item.nodeid in self._resuming.outcomes:
                continue
            if isinstance(item, ScenarioItem):
                yield self._scenario_job(item.loaded)
            elif isinstance(item, RaceItem):
                yield self._race_job(item.loaded, item.action, item.only)

    def _coming_items(self) -> Iterator[pytest.Item]:
        if not hasattr(self._pytest, "workerinput"):
            yield from self._items
            return
        for index in _queued_indexes(self._pytest):
            yield self._items[index]

    def _scenario_job(self, loaded: Loaded) -> Job:
        if loaded.id in self._jobs:
            return self._jobs[loaded.id]

        def play(session: WorkerSession, confirms: bool, earlier: Outcome | None) -> Outcome:
            of_lane = earlier if isinstance(earlier, ScenarioOutcome) else None
            return report_play(
                self._config.progress,
                loaded.id,
                session.worker,
                lambda: self._play(session, loaded, confirms, of_lane),
                alone=confirms,
                again=earlier is not None,
            )

        job = self._jobs[loaded.id] = Job(
            loaded.id, play, settings_of(loaded), tuple(loaded.scenario.needs)
        )
        return job

    def _race_job(self, loaded: Loaded, action: Action, only: str) -> Job:
        race = str(RaceId(loaded.id, action, only))
        if race in self._jobs:
            return self._jobs[race]

        def play(session: WorkerSession, confirms: bool, earlier: Outcome | None) -> Outcome:
            return report_play(
                self._config.progress,
                race,
                session.worker,
                lambda: session.race(loaded, action, only, confirms=confirms),
                alone=confirms,
                again=earlier is not None,
            )

        job = self._jobs[race] = Job(race, play, settings_of(loaded))
        return job


def lanes_of(option: argparse.Namespace, of_profile: int, *, is_worker: bool) -> int:
    """Return the number of lanes, 0 to choose it by the processors; 1 by default for a worker."""
    if option.lanes is not None or option.on:
        return option.lanes or 0
    return of_profile or int(is_worker)


def settings_of(loaded: Loaded) -> str:
    """Return a key of the special settings that a scenario needs of its server, "" for none."""
    scenario = loaded.scenario
    if scenario.config or scenario.mcp:
        return f"{scenario.config} {sorted(scenario.mcp)}"
    return "several clients" if scenario.has_several_clients else ""


def _queued_indexes(config: pytest.Config) -> list[int]:
    """Return the indexes of the items queued for a worker of pytest-xdist.

    This is not a public interface of pytest-xdist: if it changes, nothing is played ahead.
    """
    for plugin in config.pluginmanager.get_plugins():
        queue: Any = getattr(plugin, "torun", None)
        if queue is None or not hasattr(queue, "lock"):
            continue
        with queue.lock() as waiting:
            indexes = [plugin.nextitem_index, *waiting]
        return [index for index in indexes if isinstance(index, int)]
    return []
