"""Which silences are the same, and what is not played because of them."""

from __future__ import annotations

import json
from pathlib import Path

from harness.backend.model import ScriptedModel
from harness.backend.wire.responses import ResponsesEncoder
from harness.judge.verdict import Verdict
from harness.results.outcome import Finding
from harness.runner.first_turn import silence_of
from harness.runner.run import Run
from harness.runner.silence import ENOUGH, SAME_SILENCE, Silences, awaited, traits_of
from harness.scenario.ending import Ended
from harness.scenario.loader import load_text
from harness.scenario.player import Cast, Unmet
from harness.scenario.steps.awaited import ANSWER, end_of_turn, gate, model_call
from harness.scenario.steps.context import UnmetKind
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import End
from tests.unit.results.outcomes import outcome

STEER, HOLD, NAME = "the request turn/steer", "a wait for gate", "the need thread-name"
VAIN = Unmet(UnmetKind.TIMEOUT, "steer", 3, "waited 5 s", awaited=ANSWER)


def run(unmet: Unmet | None = None, method: str = "turn/steer") -> Run:
    recorder = Recorder()
    sent = {"method": method, "id": 7, "params": {}}
    recorder.record(json.dumps(sent).encode(), Direction.TO_TARGET)
    model = ScriptedModel([], ResponsesEncoder())
    ended = Ended(End.QUIESCENT)
    recorder.trace.end = ended.end
    return Run(recorder.trace, Cast(), unmet, ended, model, Path("/nowhere"), "", 1.0)


def silent(known: str = "") -> list[Finding]:
    return [Finding("scenario.timeout", "waited 5 s", known=known)]


def note(silences: Silences, name: str, *traits: str, known: str = "") -> None:
    failed = outcome(name, verdict=Verdict.FAIL, findings=silent(known))
    silences.note(name, frozenset(traits), run(VAIN), failed)


def worked(silences: Silences, *traits: str) -> None:
    silences.note("well", frozenset(traits), run(), outcome("well"))


def blocked(silences: Silences, *traits: str) -> bool:
    return silences.blocking(frozenset(traits)) is not None


def test_three_alike_block_what_has_all_that_is_suspect_in_them() -> None:
    silences = Silences()
    for number in range(ENOUGH):
        assert not blocked(silences, STEER)
        note(silences, f"s{number}", STEER, f"the model's {number}")
    assert blocked(silences, STEER)
    assert blocked(silences, STEER, NAME)
    assert not blocked(silences, NAME)


def test_what_worked_anywhere_is_not_suspect() -> None:
    silences = Silences()
    for number in range(ENOUGH):
        note(silences, f"s{number}", STEER, HOLD)
    assert not blocked(silences, HOLD)
    worked(silences, HOLD)
    assert blocked(silences, STEER)
    worked(silences, STEER)
    assert not blocked(silences, STEER, HOLD)


def test_waits_alone_are_too_little_in_common() -> None:
    silences = Silences()
    for number in range(ENOUGH):
        note(silences, f"s{number}", HOLD, f"the request m/{number}")
    assert not blocked(silences, HOLD)


def test_silence_that_a_baseline_knows_blocks_nothing() -> None:
    silences = Silences()
    for number in range(2 * ENOUGH):
        note(silences, f"s{number}", STEER, known="as it is")
    assert not blocked(silences, STEER)


def test_finding_names_what_was_awaited_where_and_what_to_do() -> None:
    silences = Silences()
    for number in range(ENOUGH):
        note(silences, f"s{number}", STEER)
    finding = silences.blocking(frozenset({STEER}))
    assert finding is not None
    assert finding.id == SAME_SILENCE
    for said in ("an answer to turn/steer", "s0, s1, s2", STEER, "--keep-going"):
        assert said in finding.message
    assert list(silences.found.values()) == [finding]


def test_the_same_is_awaited_whatever_its_alias() -> None:
    for one, other, same in (
        (end_of_turn("u"), end_of_turn("v"), "the end of a turn"),
        (gate("held"), gate("shut"), "the model's stream at a gate"),
        (model_call(2, ended=False), model_call(3, ended=False), "a model call"),
        (model_call(2, ended=True), model_call(3, ended=True), "the end of a model call"),
    ):
        assert one.words != other.words
        for what in (one, other):
            assert awaited(run(Unmet(UnmetKind.TIMEOUT, "wait", 1, "", awaited=what))) == same
    assert awaited(run(Unmet(UnmetKind.TIMEOUT, "scenario", 1, ""))) == "the scenario's end"


def test_only_waiting_in_vain_is_silence() -> None:
    assert silence_of(run(VAIN)) == "turn/steer was not answered"
    assert silence_of(run(Unmet(UnmetKind.REFUSED, "steer", 3, "no"))) == ""
    assert silence_of(run()) == ""


def test_traits_are_needs_methods_questions_and_parts() -> None:
    loaded = load_text(
        """
title: x
needs: [command-approval]
settings: {approvalPolicy: untrusted}
model: [{reply: [{run: {command: "true"}}]}, {reply: [{message: "done"}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hello, as: u}
  - answer: {to: item/commandExecution/requestApproval, decision: accept}
  - wait: {turn: u}
  - interrupt: {turn: u}
""",
        name="x",
    )
    assert {
        "the need command-approval",
        "approvalPolicy untrusted",
        "an answer to item/commandExecution/requestApproval",
        "a wait for turn",
        "the request turn/interrupt",
        "the model's run",
        "the model's message",
    } <= traits_of(loaded)
