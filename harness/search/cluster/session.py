"""Session of a run whose plays are units on a cluster; a `WorkerSession` for those who hold it."""

import zlib
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from harness.judge.verdict import Verdict
from harness.play.config import Config
from harness.play.interruption import Waiter
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome
from harness.scenario.loader import Loaded
from harness.scenario.model import Action
from harness.scenario.race_id import RaceId
from harness.search.cluster.connection import Cluster, ClusterLost
from harness.search.cluster.units import (
    PLAYER,
    Played,
    PlayUnit,
    decode,
    encode,
    first_message,
    plays_of,
)
from harness.search.worker_processes import WorkerLost

T = TypeVar("T", ScenarioOutcome, RaceOutcome)


class ClusterSession(WorkerSession):
    """A slot of a cluster. Its plays raise `ClusterLost` when the cluster is lost.

    `close` ends the programs of the run on all workers.
    """

    def __init__(self, config: Config, slot: int, cluster: Cluster, waits: Waiter) -> None:
        address = cluster.slots[slot].partition("://")[2]
        super().__init__(config, f"{address}-{slot + 1}", interruption=waits)
        self._cluster, self._slot, self._waits = cluster, slot, waits
        self._program = cluster.program(PLAYER, first_message(config), encode(None))

    def play(
        self, loaded: Loaded, *, confirms: bool = True, earlier: ScenarioOutcome | None = None
    ) -> ScenarioOutcome:
        """Play a scenario on the cluster. The verdict is ERROR if it is lost there."""
        if self.config.plays.is_over:
            return super().play(loaded)
        lost = ScenarioOutcome(loaded.id, str(loaded.path), loaded.scenario.title, Verdict.ERROR)
        return self._outcome(lost, loaded, confirms=confirms, earlier=earlier)

    def race(
        self, loaded: Loaded, action: Action, only: str = "", *, confirms: bool = True
    ) -> RaceOutcome:
        """Play a race on the cluster, as `play` does."""
        if self.config.plays.is_over:
            return super().race(loaded, action, only)
        name, title = str(RaceId(loaded.id, action)), loaded.scenario.title
        lost = RaceOutcome(name, loaded.id, str(loaded.path), title, action, Verdict.ERROR)
        return self._outcome(lost, loaded, confirms=confirms, action=action, only=only)

    def _outcome(self, lost: T, loaded: Loaded, **more: Any) -> T:
        """Return the outcome of a unit, its traces stored here; `lost` if it is lost."""
        unit = encode(PlayUnit.of(loaded, **more))
        try:
            answer = self._waits.wait(self._cluster.submit(self._slot, self._program, unit))
        except WorkerLost as error:
            return replace(lost, reason=f"it was played twice without a result: {error}")
        played = self._take(answer)
        outcome: Any = played.outcome
        there, outcome.path = outcome.path, lost.path
        for play in plays_of(outcome):
            play.path = lost.path if play.path == there else play.path
            if play.trace:
                self._keep(play, zlib.decompress(played.traces[play.id]))
        return outcome

    def _take(self, answer: dict[str, Any]) -> Played:
        played = decode(answer, Played)
        self.findings += played.findings
        self.starts += played.starts
        self.start_seconds = self.start_seconds or played.start_seconds
        self.answer_seconds = self.answer_seconds or played.answer_seconds
        return played

    def _keep(self, outcome: ScenarioOutcome, trace: bytes) -> None:
        path = self.trace_path(outcome.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{self._slot}.part")
        part.write_bytes(trace)
        part.replace(path)
        self.note_trace(path, outcome)

    def close(self) -> list[Finding]:
        """End the programs of the run; return what they found outside their plays."""
        with suppress(ClusterLost):
            for answer in self._cluster.end_programs():
                self._take(answer)
        return self.findings
