"""Probes before a scenario is played: their choice, their number, and their conclusions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.profile import Profile
from harness.model.model import ScriptedModel
from harness.model.script import Script
from harness.model.wire.responses import ResponsesEncoder
from harness.play.capability_evidence import METHODS
from harness.play.run import Run
from harness.play.session.capability_prober import CapabilityProber, absent_after_probe, load_probes
from harness.scenario.ending import TraceEnding
from harness.scenario.loader import Loaded, load_text
from harness.scenario.player import Cast, StepFailure
from harness.scenario.steps.context import FailureKind
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import End
from tests.unit.results.outcomes import BOOK

SPEC = Profile(name="p")
HISTORY = METHODS["history"]


def needing(*needs: str) -> Loaded:
    text = f"title: one\nneeds: [{', '.join(needs)}]\nclient: [{{start_thread: {{as: t}}}}]\n"
    return load_text(text, name="one")


def probe(capability: str) -> Loaded:
    (found,) = [one for one in load_probes() if capability in one.scenario.needs]
    return found


def run(
    unknown: Sequence[str] = (),
    known: Sequence[str] = (),
    *,
    end: End = End.QUIESCENT,
    unmet: StepFailure | None = None,
    model_calls: Sequence[dict[str, Any]] = (),
    turns: int = 0,
    script: dict[str, Script] | None = None,
    cwd: Path = Path("/nowhere"),
) -> Run:
    """A run in which requests were sent: the unknown ones were refused as such."""
    recorder = Recorder()
    for number, method in enumerate([*unknown, *known]):
        asked = {"method": method, "id": number, "params": {}}
        recorder.record(json.dumps(asked).encode(), Direction.TO_TARGET)
        code = -32601 if method in unknown else -32602
        answer = {"id": number, "error": {"code": code, "message": "no"}}
        recorder.record(json.dumps(answer).encode(), Direction.FROM_TARGET)
    for number in range(turns):
        began = {"threadId": f"t{number}", "turn": {"id": f"u{number}", "items": []}}
        told = {"method": "turn/started", "params": began}
        recorder.record(json.dumps(told).encode(), Direction.FROM_TARGET)
    recorder.trace.end = end
    steps = script if script is not None else probe("model-retry").scenario.scripts()
    model = ScriptedModel(steps, ResponsesEncoder())
    for body in model_calls:
        model.answer(json.dumps(body).encode())
    return Run(recorder.trace, Cast(), unmet, TraceEnding(end), model, cwd, "", 1.0)


class Target:
    """Target that answers every probe with a run, and records which were played."""

    def __init__(self, made: Run) -> None:
        self.made = made
        self.played: list[str] = []

    def play(self, asked: Loaded) -> Run:
        self.played.append(asked.id)
        return self.made


def test_probes_ask_for_what_the_book_knows_and_no_two_for_the_same() -> None:
    asked = [need for one in load_probes() for need in one.scenario.needs]
    assert len(asked) == len(set(asked)) > 10
    assert set(asked) <= {one.id for one in BOOK.capabilities}
    # A process that others have used must have no say in what a server offers.
    assert all(one.scenario.needs_fresh_server for one in load_probes())


def test_every_method_of_a_capability_of_requests_is_asked_for() -> None:
    sent = {
        step["request"]["method"]
        for step in probe("history").scenario.model_dump(by_alias=True)["client"]
    }
    assert sent == {method for methods in METHODS.values() for method in methods}
    assert set(METHODS) == set(probe("history").scenario.needs)


def test_probe_is_played_once_and_only_when_it_is_needed() -> None:
    target = Target(run(unknown=HISTORY))
    asking = CapabilityProber(SPEC)
    assert asking.missing_needs(needing(), target.play) == []
    assert asking.missing_needs(needing("ephemeral"), target.play) == []
    assert target.played == []
    for _ in range(2):
        assert asking.missing_needs(needing("ephemeral", "history"), target.play) == ["history"]
    assert target.played == ["probes/methods"]


def test_promise_is_not_asked_for() -> None:
    target = Target(run(unknown=HISTORY))
    asking = CapabilityProber(Profile(name="p", capabilities=["core", "history"]))
    assert asking.missing_needs(needing("history"), target.play) == []
    assert target.played == []


@pytest.mark.parametrize("known", HISTORY)
def test_partly_offered_capabilities_are_left_to_each_scenario(known: str) -> None:
    unknown = [method for method in HISTORY if method != known]
    assert absent_after_probe(probe("history"), run(unknown, [known]), SPEC) == set()
    assert "history" in absent_after_probe(probe("history"), run(HISTORY), SPEC)


def test_probe_that_breaks_off_shows_nothing() -> None:
    stuck = StepFailure(FailureKind.TIMEOUT, "request", 4, "waited 5 s")
    for broken in (run(HISTORY, unmet=stuck), run(HISTORY, end=End.EXITED)):
        assert absent_after_probe(probe("history"), broken, SPEC) == set()


def test_tool_that_is_not_offered_shows_both_the_tool_and_its_approval_absent() -> None:
    lacking = StepFailure(
        FailureKind.NOT_OFFERED, "wait", 9, "no tool", capability="command-execution"
    )
    found = absent_after_probe(probe("command-execution"), run(unmet=lacking), SPEC)
    assert found == {"command-execution", "command-approval"}


def test_model_is_asked_for_in_every_way_before_it_is_not_retried() -> None:
    calls = [
        {"input": [{"type": "message", "role": "user", "content": f"call {number}"}]}
        for number in range(4)
    ]
    retry = probe("model-retry")
    assert absent_after_probe(retry, run(model_calls=calls, turns=4), SPEC) == {"model-retry"}
    assert absent_after_probe(retry, run(model_calls=calls[:3], turns=4), SPEC) == set()
    assert absent_after_probe(retry, run(model_calls=[*calls, calls[2]], turns=4), SPEC) == set()


def test_probe_remembers_what_it_has_seen() -> None:
    calls = [
        {"input": [{"type": "message", "role": "user", "content": f"call {number}"}]}
        for number in (0, 1, 2, 3, 2)
    ]
    target = Target(run(model_calls=calls, turns=4))
    prober = CapabilityProber(SPEC)
    prober.missing_needs(needing("model-retry", "idle-timeout"), target.play)
    assert prober.offered == {"model-retry"}


@pytest.mark.parametrize(
    ("capability", "written"),
    [("sandbox", "by-a-command.txt"), ("sandbox-policy", "by-a-patch.txt")],
)
def test_sandbox_that_lets_a_file_be_written_is_none(
    capability: str, written: str, tmp_path: Path
) -> None:
    asked = probe(capability)
    script = asked.scenario.scripts()
    called = run(model_calls=[{"input": "write a file"}], script=script, cwd=tmp_path)
    assert absent_after_probe(asked, called, SPEC) == set()
    (tmp_path / written).write_text("a\n")
    assert absent_after_probe(asked, called, SPEC) == {capability}
