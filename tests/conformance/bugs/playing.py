"""Plays of scenarios on a server with a bug, and their findings."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from harness.judge.verdict import Level, Verdict
from harness.play.config import configure
from harness.play.repeats import Repeats
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import ScenarioOutcome
from harness.scenario.bundled import bundled_scenario
from harness.scenario.loader import Loaded
from tests.conformance.bugs.forking import forked
from tests.conformance.bugs.registry import Bug
from tests.conformance.judging import lacks_here

SERVE = Path(__file__).with_name("serve.py")
PRELOADED = "tests.conformance.bugs.all_tables:serve"
KEEPER = Path(__file__).with_name("keeper.toml")
TARGETS = {"reference": ("reference", "app-server"), "keeper": (str(KEEPER), "{listen}")}
MAX_PLAYS = 3
START_SECONDS = 20.0
"""Maximum seconds of a server's start, unscaled: on a busy machine it can take several."""


class Once(Repeats):
    """Stub that repeats nothing: these tests do not check whether a failure is flaky."""

    def repeat(self, *_: object) -> list[object]:  # type: ignore[override]
        return []


def play(planted: Bug) -> dict[str, ScenarioOutcome]:
    """Play the scenarios that a bug turns red; return their outcomes by id.

    A play that does not show the bug is repeated, since some bugs show in a race only and a busy
    machine can take longer than the short bounds used here. Scenarios that this machine cannot play
    are left out, such as those that confine commands if bubblewrap is missing.
    """
    target, arguments = TARGETS[planted.server]
    command = f"'{sys.executable}' '{SERVE}' {planted.name} {arguments}"
    wanted = [bundled_scenario(name) for name in planted.reds]
    # A server takes a second or more to import its MCP client.
    calls_mcp = any("mcp-tools" in one.scenario.needs for one in wanted)
    scale = 1.2 if calls_mcp else 0.4
    config = configure(
        target=target,
        server_cmd=command,
        scale=scale,
        lacks=lacks_here(target),
        keep_going=True,
    )
    bounds = config.profile.bounds.model_copy(update={"start": START_SECONDS / scale})
    profile = config.profile.model_copy(update={"bounds": bounds})
    session = WorkerSession(replace(config, profile=profile))
    session._repeats = Once(session._attempt, session._thread.retire, Level.MUST)
    try:
        with forked(str(SERVE), PRELOADED):
            return _outcomes(session, planted, wanted)
    finally:
        session.close()


def _outcomes(
    session: WorkerSession, planted: Bug, wanted: list[Loaded]
) -> dict[str, ScenarioOutcome]:
    lacks = {one.capability for one in session.config.lacks}
    playable = [one for one in wanted if not lacks & set(one.scenario.needs)]
    return {one.id: _play_until_told(session, one, planted.reds[one.id]) for one in playable}


def _play_until_told(session: WorkerSession, loaded: Loaded, red: str) -> ScenarioOutcome:
    for _ in range(MAX_PLAYS - 1):
        outcome = session.play(loaded)
        if tells(outcome, red):
            return outcome
    return session.play(loaded)


def told(outcome: ScenarioOutcome) -> list[str]:
    """Return the broken MUST and SHOULD rules, and the findings of a play as `id: message`."""
    rules = {
        row.rule
        for row in outcome.rows
        if row.verdict is Verdict.FAIL and row.level is not Level.INFO
    }
    return [*sorted(rules), *(f"{one.id}: {one.message}" for one in outcome.findings)]


def tells(outcome: ScenarioOutcome, red: str) -> bool:
    """Return whether `red` was reported: a rule id, or `finding: part of its message`."""
    name, _, piece = red.partition(": ")
    if not piece:
        return name in told(outcome)
    return any(one.startswith(f"{name}: ") and piece in one for one in told(outcome))
