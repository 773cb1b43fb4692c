"""A correct SDK with unusual choices is green, and each of its planted mistakes is found.

The stranger (fixtures/programs/odd_sdk.py) chose otherwise wherever the text leaves a choice; a
habit is one mistake. The Python SDK of this project is judged here too; the others in `make real`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from harness.judge.verdict import Level, Verdict
from harness.play.config import configure
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import ScenarioOutcome
from harness.scenario.bundled import bundled_files, bundled_scenario
from harness.scenario.loader import Loaded
from harness.scenario.surfaces import SDK, needs_agent
from tests.conformance.scripts import forked_script
from tests.sampling import one_in

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

ROOT = Path(__file__).parents[2]
ODD = ROOT / "fixtures" / "programs" / "odd_sdk.py"
DRIVER = ROOT / "fixtures" / "sdk_drivers" / "python_driver.py"
HABITS = runpy.run_path(str(ODD))["HABITS"]
# What each habit breaks, and the scenario that tells of it.
TOLD = {
    "forgets-the-model": ("sdk-child.options", "options"),
    "forgets-switches": ("sdk-child.switches", "switches"),
    "takes-the-first-text": ("sdk-child.input", "input-and-schema"),
    "nests-config": ("sdk-child.config", "options"),
    "adds-the-environment": ("sdk-child.env", "environment"),
    "inherits-nothing": ("sdk-child.key", "environment"),
    "forgets-the-schema": ("sdk-child.schema", "input-and-schema"),
    "starts-anew": ("sdk-child.resumed", "several-turns"),
    "keeps-no-id": ("sdk-thread.id-known", "several-turns"),
    "takes-the-first-message": ("sdk-run.final-response", "plain-turn"),
    "gives-started-items": ("sdk-run.items", "plain-turn"),
    "parses-the-answer": ("sdk-run.result-shape", "input-and-schema"),
    "loses-usage": ("sdk-run.usage", "plain-turn"),
    "resolves-failures": ("sdk-run.rejects", "failed"),
    "stops-at-the-first-item": ("sdk-streamed.events", "streamed"),
    "kills-by-another-name": ("sdk-run.abort-error", "aborted"),
    "ignores-the-path": ("sdk-child.started", "plain-turn"),
    "has-a-binary-of-its-own": ("sdk-child.found-on-path", "left-out"),
    "starts-in-the-root": ("sdk-child.current-directory", "left-out"),
    "skips-the-check-by-default": ("sdk-child.switches", "switches"),
}

# Scenarios that record choices; an SDK that starts another program is told by each.
OF_CHOICES = ("sdk-aborts", "sdk-ends", "sdk-options")


def calls() -> list[Loaded]:
    every = [bundled_scenario(name) for name in bundled_files()]
    sdk = [one for one in every if SDK in one.scenario.surfaces]
    return [one for one in sdk if not needs_agent(one.scenario)]


def played(command: str, *scenarios: Loaded, target: str = "spec") -> list[ScenarioOutcome]:
    session = WorkerSession(configure(target=target, sdk_cmd=command))
    try:
        with forked_script(ODD):
            return [session.play(one.on_surface(SDK)) for one in scenarios]
    finally:
        session.close()


def told(outcomes: list[ScenarioOutcome]) -> set[str]:
    return {
        row.rule
        for one in outcomes
        for row in one.rows
        if row.verdict in (Verdict.FAIL, Verdict.ERROR) and row.level is not Level.INFO
    }


@pytest.mark.parametrize(
    "command",
    [
        f"'{sys.executable}' '{ODD}'",
        f"env 'PYTHONPATH={ROOT / 'sdk' / 'python'}' '{sys.executable}' '{DRIVER}'",
    ],
    ids=["stranger", "agent_sdk"],
)
def test_a_correct_sdk_is_green(command: str) -> None:
    outcomes = played(command, *calls())
    assert told(outcomes) == set()
    assert {one.id: one.reason for one in outcomes if one.verdict is not Verdict.PASS} == {}


def test_an_sdk_that_looks_for_another_program_on_path_is_given_one(tmp_path: Path) -> None:
    command = f"env ODD_PROGRAM=codex '{sys.executable}' '{ODD}'"
    left_out = bundled_scenario("sdk-calls/left-out")
    (lost,) = played(command, left_out)
    assert lost.verdict is Verdict.FAIL
    profile = tmp_path / "mine.toml"
    profile.write_text('name = "mine"\n[sdk]\nagent_name = "codex"\n')
    (outcome,) = played(command, left_out, target=str(profile))
    assert (outcome.verdict, told([outcome])) == (Verdict.PASS, set())


@pytest.mark.parametrize("habit", one_in(6, HABITS, pytest.mark.bugs))
def test_a_mistake_of_an_sdk_is_told_by_its_rule(habit: str) -> None:
    rule, name = TOLD[habit]
    command = f"'{sys.executable}' '{ODD}' {habit}"
    assert rule in told(played(command, bundled_scenario(f"sdk-calls/{name}")))


@pytest.mark.parametrize("name", one_in(3, OF_CHOICES, pytest.mark.bugs))
def test_a_mistake_shows_where_choices_are_recorded_too(name: str) -> None:
    command = f"'{sys.executable}' '{ODD}' ignores-the-path"
    assert "sdk-child.started" in told(played(command, bundled_scenario(f"choices/{name}")))


def test_every_scenario_of_the_sdk_is_red_for_a_habit() -> None:
    named = {f"sdk-calls/{name}" for _, name in TOLD.values()}
    assert set(TOLD) == set(HABITS)
    assert {one.id for one in calls()} == named | {f"choices/{name}" for name in OF_CHOICES}
