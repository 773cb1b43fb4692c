"""Scenarios with faults on the reference server: each operation is noticed or reported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.judge.verdict import Verdict
from harness.play.config import configure
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import ScenarioOutcome
from harness.scenario.loader import load
from harness.trace.store import load as load_trace
from harness.trace.surface.registry import classify_of

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SCENARIO = """
title: A turn with faults
model:
  - reply: [{{message: {{deltas: ["Hello ", "there."]}}}}]
faults:
{faults}
client:
  - start_thread: {{as: t}}
  - start_turn: {{thread: t, text: "hello", as: u}}
  - wait: {{turn: u}}
expect:
  violations: [{violations}]
"""
NOTICED = {
    "- duplicate: turn/started": "turn.started-once",
    "- reorder: {method: item/agentMessage/delta, nth: 1}": "delta.rebuilds-reply",
    "- cut: {method: item/agentMessage/delta, nth: 1}": "frame.well-formed, delta.rebuilds-reply",
    "- {delay: {method: item/completed, item: agentMessage}, until: turn/completed}": (
        "turn.completed-last"
    ),
    "- {inject: {method: turn/started, params: $.params}, behind: turn/started, once: true}": (
        "turn.started-once"
    ),
}


@pytest.fixture(scope="module")
def session() -> Iterator[WorkerSession]:
    session = WorkerSession(configure(target="reference"), worker="faults")
    yield session
    session.close()


def play(session: WorkerSession, folder: Path, faults: str, violations: str) -> ScenarioOutcome:
    file = folder / "faulty.scenario.yaml"
    written = "\n".join(f"  {line}" for line in faults.splitlines())
    file.write_text(SCENARIO.format(faults=written, violations=violations), "utf-8")
    return session.play(load(file))


@pytest.mark.parametrize(("faults", "violations"), NOTICED.items())
def test_a_scenarios_fault_is_noticed_and_is_no_breach_of_the_server(
    faults: str, violations: str, session: WorkerSession, tmp_path: Path
) -> None:
    outcome = play(session, tmp_path, faults, violations)
    assert (outcome.verdict, outcome.reason) == (Verdict.PASS, "")
    assert (outcome.rows, outcome.record) == ([], None)
    trace = load_trace(session.trace_path(outcome.id), classify_of=classify_of)
    assert trace.header.faults


def test_a_fault_that_never_acts_is_told(session: WorkerSession, tmp_path: Path) -> None:
    outcome = play(session, tmp_path, "- drop: turn/diff/updated\n- {drop: error, after: 1}", "")
    assert [(one.id, one.message) for one in outcome.findings] == [
        ("scenario.fault-idle", "the fault drop never acted: no turn/diff/updated"),
        (
            "scenario.fault-idle",
            "the fault drop never acted: it found no place after the 1 that it spares",
        ),
    ]


def test_the_process_after_a_scenario_with_faults_is_a_sound_one(
    session: WorkerSession, tmp_path: Path
) -> None:
    play(session, tmp_path, "- drop: {method: item/agentMessage/delta}", "delta.rebuilds-reply")
    file = tmp_path / "sound.scenario.yaml"
    text = SCENARIO.format(faults="", violations="").replace("faults:\n\n", "")
    file.write_text(text, "utf-8")
    outcome = session.play(load(file))
    assert outcome.verdict is Verdict.PASS
    assert any(row.rule == "delta.rebuilds-reply" for row in outcome.rows)
