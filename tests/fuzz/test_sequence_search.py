"""Covering sequences on servers: what they cover, what they find, and what they say of it."""

from __future__ import annotations

import json
import math
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from harness.play.config import configure
from harness.search.sequences import alphabet, goals, kept_plan
from harness.search.sequences import search as searching
from harness.search.sequences.goals import Plan
from harness.search.sequences.kept_plan import KEPT, KEPT_ACROSS
from harness.search.sequences.planning import ONE_THREAD, TWO_THREADS, Goal, plan_tuples
from harness.search.sequences.search import SequenceCampaign, search_sequences
from tests.conformance.bugs.playing import SERVE
from tests.conformance.bugs.registry import every
from tests.processes import run_warm

pytestmark = [pytest.mark.slow, pytest.mark.socket]
ROOT = Path(__file__).parents[2]
MINIMAL = f"'{sys.executable}' '{ROOT}/fixtures/servers/minimal.py'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def search(server: str = "", *, cases: int | None = None, ways: int = 2) -> SequenceCampaign:
    target = "spec" if server else "reference"
    config = configure(target=target, server_cmd=server, scale=1.0)
    return search_sequences(config, ways, math.inf, cases=cases)


def counts(campaign: SequenceCampaign) -> dict[str, dict[str, Any]]:
    return {kind["goals"]: kind for kind in campaign.coverage.plain()}


def test_conversations_on_a_sound_server_cover_what_they_plan() -> None:
    campaign = search(cases=6)
    assert [failure.text for failure in campaign.failures] == []
    # The first six conversations use two kept states after each of three operations.
    pairs = counts(campaign)["pairs of an operation and a kept state"]
    assert pairs["covered"] == 6 * 3 * 2
    assert pairs["covered"] + pairs["not_played"] == pairs["total"]
    assert counts(campaign)["pairs across two threads"]["covered"] == 0


def test_small_server_is_not_asked_for_what_it_does_not_offer() -> None:
    campaign = search(MINIMAL)
    assert [failure.text for failure in campaign.failures] == []
    pairs = counts(campaign)["pairs on one thread"]
    assert pairs["impossible"] > pairs["covered"] > 0
    assert pairs["not_played"] == 0
    reasons = {entry["reason"] for entry in pairs["uncovered"]}
    assert "impossible: needs history" in reasons


def test_command_tells_and_reports_what_is_covered(tmp_path: Path) -> None:
    words = ["--what", "sequences", "--conversations", "2", "--json", "out.json", "-v"]
    said = run_warm("harness", "fuzz", "--target", "reference", *words, cwd=tmp_path)
    assert said.status == 0, said.out + said.err
    assert "fuzz sequences: 2 ways, 2 conversations" in said.out
    assert "pairs on one thread: " in said.out
    assert " not played (" in said.out
    (searched,) = json.loads((tmp_path / "out.json").read_text())["searches"]
    first = searched["coverage"][0]
    assert f"{first['goals']}: {first['covered']:,} of {first['total']:,}" in said.out
    assert len(first["uncovered"]) == first["total"] - first["covered"]


def test_pytest_plays_them_beside_scenarios(tmp_path: Path) -> None:
    words = ["--target", "reference", "--sequences", "2", "--max-time", "4"]
    files = ["--harness-json", "out.json", "--harness-markdown", "out.md"]
    chosen = ["turns/plain-turn", *words, *files]
    said = run_warm("pytest", "--assert=plain", "-q", *chosen, cwd=tmp_path)
    assert said.status == 0, said.out + said.err
    goals_across = sum(goal.scope == TWO_THREADS for goal, _ in goals.all_goals(2))
    words = f"pairs across two threads: 0 of {goals_across:,} ({goals_across:,} not played)"
    assert words in said.out
    (search,) = [
        search
        for result in json.loads((tmp_path / "out.json").read_text())["fuzz"]
        for search in result["searches"]
    ]
    assert search["kind"] == "sequences"
    assert "| sequences | " in (tmp_path / "out.md").read_text()


@pytest.mark.parametrize("is_late", [False, True])
def test_request_that_is_deaf_the_second_time_is_found_with_a_short_case(
    monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """It is confirmed as well if its turn comes after the time of the search."""
    names = ("turn", "interrupt after end")
    some = tuple(operation for operation in alphabet.OPERATIONS if operation.name in names)
    for module in (goals, searching):
        monkeypatch.setattr(module, "OPERATIONS", some)
    plans = tuple(plan for plan in goals.PLANS if plan.scope == ONE_THREAD)
    monkeypatch.setattr(searching, "PLANS", plans)
    # Each try waits for the answer in vain: the short sequence is enough here.
    monkeypatch.setattr(searching, "SHRINK_SECONDS", -1e6 if is_late else 0.1)
    broken = ROOT / "fixtures/servers/broken/deaf_to_late_interrupts.py"
    config = configure(target="spec", server_cmd=f"'{sys.executable}' '{broken}'", scale=1.0)
    campaign = search_sequences(config, 2, 600.0, cases=1)
    causes = {failure.cause: failure for failure in campaign.failures}
    failure = causes["request.answered"]
    assert "turn/interrupt" in failure.text
    assert len(failure.document["client"]) <= 20


def test_leak_between_threads_is_confirmed_by_a_later_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation with one thread fails after another conversation, and not alone."""
    turn = [operation for operation in alphabet.OPERATIONS if operation.name == "turn"]

    def plan_of(scope: str) -> Plan:
        goal = Goal(scope, ("turn", "turn"))
        twice = chain.from_iterable(plan_tuples(turn, 2, {goal}, scope) for _ in range(2))
        return Plan(scope, lambda offered, goals: twice)

    monkeypatch.setattr(searching, "LANES", 1)
    monkeypatch.setattr(searching, "SHRINK_SECONDS", 0.1)
    broken = ROOT / "fixtures/servers/broken/leaks_state.py"

    def search_with(*scopes: str) -> SequenceCampaign:
        monkeypatch.setattr(searching, "PLANS", tuple(map(plan_of, scopes)))
        return search(f"'{sys.executable}' '{broken}'", cases=20)

    alone = search_with(ONE_THREAD)
    assert not alone.failures
    assert "item.completed-after-started" in alone.unsteady[0]
    campaign = search_with(ONE_THREAD, TWO_THREADS)
    assert [failure.cause for failure in campaign.failures] == ["item.completed-after-started"]
    assert campaign.unsteady == []


BUGS = {name: one for name, one in every().items() if one.sequences}
# The operation after which it shows, the kept state that shows it, and the plan.
LOST_BY = {
    "a-failure-ends-approvals": ("failed turn", "session approvals", KEPT),
    "an-interrupt-takes-overrides-back": ("interrupt reply", "settings", KEPT),
    "a-schema-is-of-all-threads": ("turn", "schemas", KEPT_ACROSS),
    "a-diff-is-that-of-all-threads": ("accept patch", "patches", KEPT_ACROSS),
    "a-failed-thread-stays-active": ("failed turn", "", ONE_THREAD),
}


@pytest.mark.parametrize(
    "name", [next(iter(BUGS)), *(pytest.param(one, marks=pytest.mark.bugs) for one in [*BUGS][1:])]
)
def test_state_lost_in_another_operation_is_reported(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    operation, state, scope = LOST_BY[name]
    # Three fill a conversation: after a restart, with another client, fewer rules judge.
    names = ("turn", operation, "retried turn")
    some = tuple(one for one in alphabet.OPERATIONS if one.name in names)
    for module in (goals, searching, kept_plan):
        monkeypatch.setattr(module, "OPERATIONS", some)
    states = tuple(one for one in kept_plan.KEPT_STATES if one.name == state)
    monkeypatch.setattr(kept_plan, "KEPT_STATES", states)
    plans = tuple(plan for plan in goals.PLANS if plan.scope == scope)
    monkeypatch.setattr(searching, "PLANS", plans)
    monkeypatch.setattr(searching, "SHRINK_SECONDS", 0.1)
    server = f"'{sys.executable}' '{SERVE}' {name} app-server"
    config = configure(target="reference", server_cmd=server, scale=1.0)
    campaign = search_sequences(config, 2, math.inf, cases=1)
    steady = [failure.cause for failure in campaign.failures if not failure.flaky]
    assert BUGS[name].sequences in steady
