"""Snapshots in a run with `--snapshots DIR`: kept, compared, and unused ones."""

import argparse
import contextlib
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.judge.verdict import Verdict
from harness.play.config import Config
from harness.play.interruption import Interrupted
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import Finding, ScenarioOutcome, SnapshotResult
from harness.report.shards.snapshot_findings import PASSED, snapshot_findings, unused_snapshots
from harness.report.shards.values import SnapshotSettings
from harness.report.snapshot.changes import headline
from harness.report.snapshot.folder import SnapshotFolder
from harness.report.snapshot.keeper import CHANGED, NEW, NOT_KEPT, SAME, UNSTEADY, Keeper
from harness.scenario.loader import Loaded
from harness.trace.surfaces import SESSION, surface_of

_MAX_LINES_SHOWN = 10
_SELECTING_OPTIONS = ("keyword", "markexpr", "deselect", "lf", "rule", "tag", "race", "no_bundled")


class Snapshots:
    """Pytest plugin of a run that keeps snapshots. Raises `UsageError` for a bad folder.

    With `strict`, as in CI, new and changed snapshots make the run fail.
    """

    def __init__(self, option: argparse.Namespace, config: Config, *, everything: bool) -> None:
        self._option, self._config, self._everything = option, config, everything
        self._folder = SnapshotFolder(Path(option.snapshots))
        self._folder.prepare()
        self._keeper = Keeper(self._folder, config.profile.name)
        self.strict = bool(option.snapshots_strict or os.environ.get("CI"))
        self._kept: dict[str, SnapshotResult] = {}
        self._unused: list[str] = []

    def play(
        self,
        session: WorkerSession,
        loaded: Loaded,
        *,
        confirms: bool = True,
        earlier: ScenarioOutcome | None = None,
    ) -> ScenarioOutcome:
        """Play a scenario as `WorkerSession.play` does, and keep its transcript if it passed."""
        outcome = session.play(loaded, confirms=confirms, earlier=earlier)
        trace = session.trace_of(loaded.id)
        if trace is None or not outcome.played or outcome.verdict not in PASSED:
            if outcome.verdict in (Verdict.FAIL, Verdict.ERROR):
                outcome.snapshot = SnapshotResult(NOT_KEPT, ("the scenario failed",))
            return outcome
        handshake = loaded.scenario.needs_fresh_server or loaded.surface != SESSION
        play_again = partial(session.play_again, loaded)
        try:
            state = self._keeper.keep(loaded.id, trace, play_again, handshake=handshake)
        except Interrupted:
            state = NOT_KEPT, ("the run was interrupted",)
        outcome.snapshot = SnapshotResult(*state)
        return outcome

    def settings(self) -> SnapshotSettings:
        """Return the settings, with the snapshots that are accepted."""
        surfaces = self._config.surfaces
        accepted = [
            scenario
            for target, scenario in self._folder.accepted_names()
            if target == self._keeper.target and surface_of(scenario) in surfaces
        ]
        selecting = any(getattr(self._option, option, None) for option in _SELECTING_OPTIONS)
        return SnapshotSettings(
            str(self._folder.path),
            self.strict,
            surfaces,
            tuple(accepted),
            is_selected=selecting or not self._everything,
        )

    def findings(
        self, outcomes: Mapping[str, ScenarioOutcome], *, is_complete: bool
    ) -> list[Finding]:
        """Return the findings about the snapshots; if all scenarios ran, note unused ones."""
        self._kept = {
            outcome.id: outcome.snapshot for outcome in outcomes.values() if outcome.snapshot
        }
        settings = self.settings()
        reasons = unused_snapshots(settings, outcomes) if is_complete else {}
        self._unused = list(reasons)
        for scenario, reason in reasons.items():
            # A failure is reported now; only the review will not know it.
            with contextlib.suppress(OSError):
                self._folder.note_unused(self._keeper.target, scenario, reason)
        return snapshot_findings(settings, outcomes, self._unused)

    def _of(self, state: str) -> list[str]:
        return sorted(name for name, snapshot in self._kept.items() if snapshot.state == state)

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the number of snapshots by state, and lines for changed and unused ones."""
        if not self._kept:
            return
        terminalreporter.section(f"snapshots in {self._folder.path}")
        states = (SAME, NEW, CHANGED, UNSTEADY, NOT_KEPT)
        counts = [(len(self._of(state)), state) for state in states]
        counts.append((len(self._unused), "unused"))
        count_words = ", ".join(f"{number} {state}" for number, state in counts if number)
        terminalreporter.write_line(f"snapshots: {count_words}")
        lines = [
            f"{state} {name}: {headline(list(self._kept[name].told))}"
            for state in (CHANGED, UNSTEADY, NOT_KEPT)
            for name in self._of(state)
        ] + [f"unused {name}" for name in self._unused]
        for line in lines[:_MAX_LINES_SHOWN]:
            terminalreporter.write_line(line if len(line) <= 300 else f"{line[:299]}…")
        if len(lines) > _MAX_LINES_SHOWN:
            terminalreporter.write_line(f"… {len(lines) - _MAX_LINES_SHOWN} more")
