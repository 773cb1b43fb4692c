"""Sanity turns of a process: the moments when one is needed, and the faults that it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.play.run import Run
from harness.play.session.sanity_turn import SANITY, last_turn_completed, sanity_problem
from harness.scenario.ending import TraceEnding
from harness.scenario.player import Cast, StepFailure
from harness.scenario.steps.context import FailureKind
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import End


def run(*ends: str, end: End = End.QUIESCENT, unmet: StepFailure | None = None) -> Run:
    """A run in which turns ended so, one after the other."""
    recorder = Recorder()
    for status in ends:
        params = {"threadId": "t", "turn": {"id": "u", "status": status}}
        message: dict[str, Any] = {"method": "turn/completed", "params": params}
        recorder.record(json.dumps(message).encode(), Direction.FROM_TARGET)
    model = ScriptedModel([], ResponsesEncoder())
    return Run(recorder.trace, Cast(), unmet, TraceEnding(end), model, Path("/nowhere"), "", 1.0)


@pytest.mark.parametrize(
    ("ends", "proven"),
    [
        (["completed"], True),
        (["failed", "completed"], True),
        (["completed", "failed"], False),
        (["completed", "interrupted"], False),
        ([], False),
    ],
)
def test_last_turn_that_completed_is_as_good_as_a_sanity_turn(
    ends: list[str], proven: bool
) -> None:
    assert last_turn_completed(run(*ends)) is proven


def test_trouble_is_said_by_what_it_is() -> None:
    late = StepFailure(FailureKind.TIMEOUT, "wait", 7, "waited 5 s")
    assert sanity_problem(run(end=End.EXITED)) == "the server ended"
    assert sanity_problem(run(unmet=late)) == "step wait: waited 5 s"
    assert sanity_problem(run(end=End.TIMED_OUT)) == "it did not come to its end (timed-out)"
    assert "model calls: expected 1; found 0" in sanity_problem(run("completed"))


def test_sanity_turn_is_a_plain_one_that_every_server_can_do() -> None:
    assert SANITY.scenario.needs == []
    assert not SANITY.scenario.needs_fresh_server
