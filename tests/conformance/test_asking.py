"""Probes of unsupported features: one each, without effect on verdicts, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.play.config import configure
from harness.play.knowledge import Knowledge
from harness.play.run import Run
from harness.play.session.capability_prober import load_probes
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import ScenarioOutcome
from harness.report.results.report import NOT_OFFERED
from harness.scenario.loader import Loaded, load_text

from .judging import SERVERS, bundled, command, judged, run_pytest

pytestmark = [pytest.mark.socket, pytest.mark.slow]

# What each probe asks for, what none does, a process of its own, a restart, two connections.
MIXED = (
    "approvals/on-request-accept",
    "compaction/automatic-fails",
    "files/add",
    "language/restart",
    "language/two-clients",
    "plans/final-differs",
    "steering/during-a-command",
    "steering/refused",
    "threads/archive",
    "threads/resume",
    "tools/update-plan",
    "turns/plain-turn",
    "turns/reasoning-raw",
    "turns/usage",
)
# Has one method of the capability `history`, and none of the others.
FORKING = f"""
import sys
sys.path.insert(0, {str(SERVERS)!r})
import minimal
minimal.METHODS += ("thread/fork",)
class Forking(minimal.Server):
    def thread_fork(self, params, reply):
        self.threads[params["threadId"]]
        self.thread_start({{}}, reply)
Forking().serve()
"""
FORK = """
title: a fork
needs: [history]
client:
  - start_thread: {as: t}
  - request: {method: thread/fork, params: {threadId: $t.thread.id}}
"""
# The handshake is in the trace of the scenario for which the process was started.
HANDSHAKE = "notification.not-answered"
NEEDY = """
title: it needs everything
needs: [{needs}]
client: [{{start_thread: {{as: t}}}}]
"""
Seen = dict[str, tuple[str, str, list[tuple[str, str, str]]]]


def seen(server: str, scenarios: Sequence[Loaded], *, asks: bool = True) -> Seen:
    """Return, by scenario, the verdict, the reason and the rows of rules in one session."""
    session = WorkerSession(configure(server_cmd=server), probes=asks)
    try:
        return {one.id: _of(session.play(one)) for one in scenarios}
    finally:
        assert session.close() == []


def _of(outcome: ScenarioOutcome) -> tuple[str, str, list[tuple[str, str, str]]]:
    rows = sorted(
        (row.rule, str(row.verdict), str(row.level))
        for row in outcome.rows
        if row.rule != HANDSHAKE
    )
    return str(outcome.verdict), outcome.reason, rows


@pytest.mark.usefixtures("place")
def test_probing_gives_the_verdicts_that_playing_everything_gives() -> None:
    scenarios = bundled(*MIXED)
    asked, played = (seen(command("minimal"), scenarios, asks=asks) for asks in (True, False))
    assert _verdicts(asked) == _verdicts(played)
    assert set(_verdicts(asked).values()) == {"PASS", "NOT_APPLICABLE"}
    for name, (verdict, reason, _) in played.items():
        # A scenario ends at the first thing that it sees to be lacking, and nothing is asked for
        # once something is known to be: each may know of more than the other.
        assert verdict == "PASS" or _lacking(asked[name][1]) & _lacking(reason), name


@pytest.mark.usefixtures("place")
def test_order_and_company_change_nothing() -> None:
    scenarios = bundled(*MIXED)
    there, back = (seen(command("minimal"), order) for order in (scenarios, scenarios[::-1]))
    apart = seen(command("minimal"), scenarios[::2]) | seen(command("minimal"), scenarios[1::2])
    assert there == back == apart


def test_number_of_workers_changes_neither_verdicts_nor_reasons(place: Path, mark: str) -> None:
    paths = [str(one.path) for one in bundled(*MIXED)]
    ran = run_pytest("--server-cmd", command("minimal"), *paths, "-n2", folder=place, mark=mark)
    alone = judged(command("minimal"), bundled(*MIXED), scale=1).report
    assert ran.status == 0
    assert ran.report["requirements"] == alone.requirements
    assert {one["id"]: one["verdict"] for one in ran.report["rules"]} == {
        one.id: one.verdict for one in alone.rules
    }
    assert {one["id"]: (one["verdict"], one["reason"]) for one in ran.report["scenarios"]} == {
        one.id: (one.verdict, one.reason) for one in alone.scenarios
    }


@pytest.mark.usefixtures("place")
def test_probes_of_the_reference_server_agree_with_its_promises() -> None:
    config = configure(target="reference")
    promised = set(config.profile.capabilities)
    probed = config.profile.model_copy(update={"capabilities": "probe"})
    knowledge = Knowledge(probed)
    session = WorkerSession(replace(config, profile=probed), knowledge=knowledge)
    needs = {need for probe in load_probes() for need in probe.scenario.needs}
    wanted = load_text(NEEDY.format(needs=", ".join(sorted(needs))), name="needy")
    try:
        session.play(wanted)
        assert all(session.trace_path(probe.id).is_file() for probe in load_probes())
        assert set(knowledge.prober.missing_needs(wanted, _plays_nothing)) == needs - promised
    finally:
        assert session.close() == []
    assert needs & promised, "some of it is offered"


def _plays_nothing(probe: Loaded) -> Run:
    raise AssertionError(f"{probe.id} is played a second time")


def test_partly_offered_capabilities_are_still_judged(place: Path) -> None:
    script = place / "forking.py"
    script.write_text(FORKING)
    scenarios = [*bundled("threads/resume-loaded"), load_text(FORK, name="fork")]
    for order in (scenarios, scenarios[::-1]):
        found = seen(command(script), order)
        assert found["fork"][:2] == ("PASS", "")
        assert found["threads/resume-loaded"][:2] == ("NOT_APPLICABLE", f"{NOT_OFFERED}history")


def _verdicts(found: Seen) -> dict[str, str]:
    return {name: verdict for name, (verdict, _, _) in found.items()}


def _lacking(reason: str) -> set[str]:
    return set(reason.removeprefix(NOT_OFFERED).split(", ")) - {""}
