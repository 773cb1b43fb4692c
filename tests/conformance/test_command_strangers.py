"""A correct `agent mcp` with unusual choices is green, and each of its planted mistakes is found.

The stranger (fixtures/programs/other_mcp.py) chose otherwise wherever the text leaves a choice; a
habit is one mistake. Every scenario of the command is red for one of them at least.
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
from harness.scenario.surfaces import COMMAND
from tests.conformance.scripts import forked_script
from tests.sampling import one_in

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "programs" / "other_mcp.py"
HABITS = runpy.run_path(str(PROGRAM))["HABITS"]
# What each habit breaks, and the scenario that tells of it.
TOLD = {
    "joins-words": ("mcp-add.verbatim", "stdio-server"),
    "eats-options": ("mcp-add.configured", "words-after-the-dashes"),
    "cuts-env": ("mcp-add.environment", "stdio-server"),
    "keeps-token": ("mcp-add.token-not-kept", "http-server"),
    "forgets-variable": ("mcp-add.bearer-variable", "http-server"),
    "stdio-for-all": ("mcp-add.configured", "http-server"),
    "writes-flat": ("mcp-config.transport", "stdio-server"),
    "loses-others": ("mcp-config.others-kept", "several-servers"),
    "loses-keys": ("mcp-config.other-keys-kept", "users-own-file"),
    "loses-comments": ("mcp-config.comments-kept", "users-own-file"),
    "takes-any-name": ("mcp-name.characters", "wrong-name"),
    "mends-names": ("mcp-name.refused", "wrong-name"),
    "shows-the-first": ("mcp-get.name-needed", "name-missing"),
    "never-removes": ("mcp-remove.removes", "several-servers"),
    "removes-anything": ("mcp-remove.tells-apart", "unknown-server"),
    "silent-remove": ("mcp-remove.says-removed", "stdio-server"),
    "unnamed-unknown": ("mcp-remove.says-unknown", "unknown-server"),
    "six-columns": ("mcp-list.columns", "stdio-server"),
    "lists-one": ("mcp-list.every-server", "several-servers"),
    "json-object": ("mcp-get.json-transport", "stdio-server"),
    "no-transport-type": ("mcp-get.json-transport", "stdio-server"),
    "hides-arguments": ("mcp-get.shows", "stdio-server"),
    "hides-address": ("mcp-login.address", "login-denied"),
    "no-scopes": ("mcp-login.scopes", "login"),
    "says-nothing-at-the-end": ("mcp-login.success-line", "login"),
    "logs-stdio-in": ("mcp-login.http-only", "login-of-stdio"),
    "keeps-credentials": ("mcp-logout.removes", "login"),
    "silent-logout": ("mcp-logout.says-removed", "login"),
    "unnamed-none": ("mcp-logout.says-none", "nothing-stored"),
    "logout-removes-server": ("mcp-logout.keeps-server", "nothing-stored"),
}
# Scenarios that record choices, and what tells of a mistake in each.
OF_CHOICES = {
    "mcp-words": ("writes-flat", "mcp-config.transport"),
    "mcp-file": ("writes-flat", "mcp-config.transport"),
    "mcp-form": ("writes-flat", "mcp-config.transport"),
    "mcp-removed": ("never-removes", "mcp-remove.removes"),
}
# What no rule that binds may tell of: it is about what the text leaves open.
RECORDED = {"added-at-once"}


def commands() -> list[Loaded]:
    every = [bundled_scenario(name) for name in bundled_files()]
    return [one for one in every if COMMAND in one.scenario.surfaces]


def played(*scenarios: Loaded, habit: str = "") -> list[ScenarioOutcome]:
    command = f"'{sys.executable}' '{PROGRAM}' {habit}"
    # A habit may keep a login waiting.
    session = WorkerSession(configure(agent_cmd=command, scale=0.3 if habit else 1.0))
    try:
        with forked_script(PROGRAM):
            return [session.play(one.on_surface(COMMAND)) for one in scenarios]
    finally:
        session.close()


def told(outcomes: list[ScenarioOutcome], *, least: Level = Level.SHOULD) -> set[str]:
    levels = (Level.MUST,) if least is Level.MUST else (Level.MUST, Level.SHOULD)
    return {
        row.rule
        for one in outcomes
        for row in one.rows
        if row.verdict in (Verdict.FAIL, Verdict.ERROR) and row.level in levels
    }


def test_a_stranger_who_chose_otherwise_everywhere_is_green() -> None:
    outcomes = played(*commands())
    assert told(outcomes) == set()
    assert {one.id: one.reason for one in outcomes if one.verdict is not Verdict.PASS} == {}


@pytest.mark.parametrize("habit", one_in(9, HABITS, pytest.mark.bugs))
def test_a_mistake_is_told_by_its_rule(habit: str) -> None:
    rule, name = TOLD[habit]
    assert rule in told(played(bundled_scenario(f"mcp-command/{name}"), habit=habit))


@pytest.mark.parametrize("name", one_in(4, OF_CHOICES, pytest.mark.bugs))
def test_a_mistake_shows_where_choices_are_recorded_too(name: str) -> None:
    habit, rule = OF_CHOICES[name]
    assert rule in told(played(bundled_scenario(f"choices/{name}"), habit=habit))


def test_every_scenario_of_the_command_is_red_for_a_habit() -> None:
    named = {f"mcp-command/{name}" for _, name in TOLD.values()}
    named |= {f"choices/{name}" for name in OF_CHOICES}
    assert set(TOLD) == set(HABITS)
    assert {one.id.split("/")[1] for one in commands() if one.id not in named} == RECORDED
