"""Repeated timeouts with one cause, and the short waits that follow from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.judge.verdict import Verdict
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.play.run import Run
from harness.play.session.first_turn import silence_of
from harness.play.session.repeated_timeouts import (
    MIN_SHORT_SECONDS,
    SAME_SILENCE,
    SCENARIOS_TO_SUSPECT,
    Silences,
    awaited_words,
    traits_of,
)
from harness.report.results.outcome import Finding
from harness.scenario.ending import TraceEnding
from harness.scenario.loader import Loaded, load_text
from harness.scenario.player import Cast, StepFailure
from harness.scenario.steps.context import FailureKind
from harness.scenario.steps.wait_targets import ANSWER, WaitTarget, end_of_turn, gate, model_call
from harness.trace.frame import Direction
from harness.trace.marks import EndingBegins, StepBegins
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Mark
from tests.unit.results.outcomes import outcome

STEER, HOLD, NAME = "the request turn/steer", "a wait for gate", "the need thread-name"
VAIN = StepFailure(FailureKind.TIMEOUT, "steer", 3, "waited 5 s", wait_target=ANSWER)


def run(
    unmet: StepFailure | None = None, method: str = "turn/steer", told: dict[str, Any] | None = None
) -> Run:
    recorder = Recorder()
    sent = {"method": method, "id": 7, "params": {}}
    recorder.record(json.dumps(sent).encode(), Direction.TO_TARGET)
    if told is not None:
        recorder.record(json.dumps(told).encode(), Direction.FROM_TARGET)
    model = ScriptedModel([], ResponsesEncoder())
    ended = TraceEnding(End.QUIESCENT)
    recorder.trace.end = ended.end
    return Run(recorder.trace, Cast(), unmet, ended, model, Path("/nowhere"), "", 1.0)


def loaded(name: str) -> Loaded:
    return load_text("title: x\nclient: [{start_thread: {as: t}}]\n", name=name)


def silent(known: str = "") -> list[Finding]:
    return [Finding("scenario.timeout", "waited 5 s", known=known)]


def note(
    silences: Silences, name: str, *traits: str, known: str = "", hurried: bool = False
) -> None:
    failed = outcome(name, verdict=Verdict.FAIL, findings=silent(known))
    vain = run(VAIN)
    vain.is_hurried = hurried
    silences.note(loaded(name), frozenset(traits), vain, failed)


def worked(silences: Silences, *traits: str) -> None:
    silences.note(loaded("well"), frozenset(traits), run(), outcome("well"))


def suspects(silences: Silences, *traits: str) -> bool:
    return silences.suspicion(frozenset(traits)) is not None


def fall_silent(silences: Silences, *traits: str, known: str = "") -> None:
    for number in range(SCENARIOS_TO_SUSPECT):
        note(silences, f"s{number}", *traits, known=known)


def test_two_alike_make_all_suspect_that_has_the_same_in_it() -> None:
    silences = Silences()
    for number in range(SCENARIOS_TO_SUSPECT):
        assert not suspects(silences, STEER)
        note(silences, f"s{number}", STEER, f"the model's {number}")
    assert suspects(silences, STEER)
    assert suspects(silences, STEER, NAME)
    assert not suspects(silences, NAME)


def test_traits_that_worked_anywhere_are_not_suspect() -> None:
    silences = Silences()
    fall_silent(silences, STEER, HOLD)
    assert not suspects(silences, HOLD)
    worked(silences, HOLD)
    assert suspects(silences, STEER)
    worked(silences, STEER)
    assert not suspects(silences, STEER, HOLD)


def test_waits_alone_are_too_little_in_common() -> None:
    silences = Silences()
    for number in range(SCENARIOS_TO_SUSPECT):
        note(silences, f"s{number}", HOLD, f"the request m/{number}")
    assert not suspects(silences, HOLD)


def vain_for(notification: str, words: str = "") -> StepFailure:
    awaited = WaitTarget(words or notification, words or notification, notification)
    return StepFailure(FailureKind.TIMEOUT, "wait", 3, "waited 5 s", wait_target=awaited)


def wait_in_vain(silences: Silences, name: str, unmet: StepFailure, *traits: str) -> None:
    failed = outcome(name, verdict=Verdict.FAIL, findings=silent())
    silences.note(loaded(name), frozenset(traits), run(unmet), failed)


def tell(silences: Silences, method: str, **params: Any) -> None:
    silences.note_working_traits(run(told={"method": method, "params": params}), frozenset())


def test_notification_that_never_comes_is_suspect_whatever_else_works() -> None:
    silences, closed = Silences(), "the server's thread/closed"
    worked(silences, STEER, NAME)
    for number in range(SCENARIOS_TO_SUSPECT):
        assert not suspects(silences, closed, STEER)
        unmet = vain_for("thread/closed", f"thread/closed where threadId: {number}")
        wait_in_vain(silences, f"s{number}", unmet, closed, STEER, NAME)
    assert suspects(silences, closed, STEER)
    assert not suspects(silences, STEER, NAME)
    tell(silences, "thread/closed")
    assert not suspects(silences, closed, STEER)


def test_an_item_of_another_type_is_another_notification() -> None:
    silences, summary = Silences(), "item/completed of contextCompaction"
    for number in range(SCENARIOS_TO_SUSPECT):
        wait_in_vain(silences, f"s{number}", vain_for(summary), f"the server's {summary}")
    tell(silences, "item/completed", item={"type": "agentMessage"})
    assert suspects(silences, f"the server's {summary}")
    assert not suspects(silences, "the server's item/completed")
    tell(silences, "item/completed", item={"type": "contextCompaction"})
    assert not suspects(silences, f"the server's {summary}")


def test_waits_for_a_notification_are_traits() -> None:
    text = """
title: x
client:
  - start_thread: {as: t}
  - wait: {notification: thread/closed, where: {threadId: $t.thread.id}}
  - wait: {notification: item/completed, where: {item.type: contextCompaction}}
  - wait: {notification: [thread/archived, thread/closed]}
"""
    told = {one for one in traits_of(load_text(text, name="x")) if one.startswith("the server's")}
    assert told == {
        "the server's thread/closed",
        "the server's item/completed of contextCompaction",
    }


def test_silence_that_a_baseline_knows_makes_nothing_suspect() -> None:
    silences = Silences()
    fall_silent(silences, STEER, known="as it is")
    fall_silent(silences, STEER, known="as it is")
    assert not suspects(silences, STEER)


def test_short_wait_is_longer_than_any_wait_that_was_not_in_vain() -> None:
    silences = Silences()
    slow = run()
    slow.trace.marks += [
        Mark(0.0, -1, StepBegins("start_thread", 1)),
        Mark(2.0, -1, StepBegins("wait", 2)),
        Mark(2.1, -1, EndingBegins()),
    ]
    silences.note(loaded("slow"), frozenset(), slow, outcome("slow"))
    fall_silent(silences, STEER)
    suspicion = silences.suspicion(frozenset({STEER}))
    assert suspicion is not None
    assert suspicion.short_bound == 6.0


def test_quick_server_is_waited_for_half_a_second() -> None:
    silences = Silences()
    fall_silent(silences, STEER)
    suspicion = silences.suspicion(frozenset({STEER}))
    assert suspicion is not None
    assert suspicion.short_bound == MIN_SHORT_SECONDS


def test_finding_names_what_was_awaited_where_and_what_to_do() -> None:
    silences = Silences()
    fall_silent(silences, STEER)
    assert suspects(silences, STEER)
    note(silences, "shortly", STEER, hurried=True)
    (suspicion,) = silences.take_unconfirmed()
    assert silences.take_unconfirmed() == []
    finding = suspicion.finding()
    assert finding.id == SAME_SILENCE
    said = ("an answer to turn/steer", "s0, s1", "shortly waited 0.5 s only", STEER, "--keep-going")
    assert [one for one in said if one not in finding.message] == []
    suspicion.is_confirmed = True
    assert "confirmed in shortly with the full bound" in suspicion.finding().message
    suspicion.is_confirmed = False
    assert "did not time out" in suspicion.finding().message


def test_the_same_is_awaited_whatever_its_alias() -> None:
    for one, other, same in (
        (end_of_turn("u"), end_of_turn("v"), "the end of a turn"),
        (gate("held"), gate("shut"), "the model's stream at a gate"),
        (model_call(2, until_ended=False), model_call(3, until_ended=False), "a model call"),
        (
            model_call(2, until_ended=True),
            model_call(3, until_ended=True),
            "the end of a model call",
        ),
    ):
        assert one.words != other.words
        for what in (one, other):
            assert (
                awaited_words(
                    run(StepFailure(FailureKind.TIMEOUT, "wait", 1, "", wait_target=what))
                )
                == same
            )
    assert (
        awaited_words(run(StepFailure(FailureKind.TIMEOUT, "scenario", 1, "")))
        == "the scenario's end"
    )


def test_only_waiting_in_vain_is_silence() -> None:
    assert silence_of(run(VAIN)) == "turn/steer was not answered"
    assert silence_of(run(StepFailure(FailureKind.REFUSED, "steer", 3, "no"))) == ""
    assert silence_of(run()) == ""


def test_traits_are_needs_methods_questions_and_parts() -> None:
    steering = load_text(
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
    } <= traits_of(steering)


def test_silence_on_a_lane_makes_nothing_suspect_before_it_is_confirmed() -> None:
    silences = Silences()
    failed = outcome("s", verdict=Verdict.FAIL, findings=silent())
    for alone, suspected in ((False, False), (True, True)):
        for number in range(SCENARIOS_TO_SUSPECT):
            traits = frozenset({STEER})
            silences.note(loaded(f"s{number}"), traits, run(VAIN), failed, alone=alone)
        assert suspects(silences, STEER) is suspected


def test_silence_on_a_lane_counts_where_the_same_never_came_to_a_scenario_alone() -> None:
    silences = Silences()
    told = "thread/archived"
    failed = outcome("s", verdict=Verdict.FAIL, findings=silent())
    vain = run(
        StepFailure(
            FailureKind.TIMEOUT, "wait", 3, "waited 5 s", wait_target=WaitTarget(told, told, told)
        )
    )
    of_lane = [loaded("first"), loaded("second"), loaded("third")]
    silences.note(of_lane[0], frozenset({NAME}), vain, failed, alone=False)
    assert not silences.never_came(told)
    silences.note(of_lane[0], frozenset({NAME}), vain, failed)
    assert silences.never_came(told)
    # One scenario is one, however often it is played.
    silences.note(of_lane[0], frozenset({NAME}), vain, failed, alone=False)
    assert not suspects(silences, f"the server's {told}")
    silences.note(of_lane[1], frozenset({STEER}), vain, failed, alone=False)
    suspicion = silences.suspicion(frozenset({f"the server's {told}"}))
    assert suspicion is not None
    assert suspicion.seen_in == ("first", "second")
    vain.is_hurried = True
    silences.note(of_lane[2], frozenset({HOLD}), vain, failed, alone=False)
    assert suspicion.hurried_scenarios == [of_lane[2]]
    # Played alone it did not wait in vain after all: it is no case of this silence.
    silences.note(of_lane[2], frozenset({HOLD}), run(told={"method": told}), outcome("third"))
    assert suspicion.hurried_scenarios == []
    assert not silences.never_came(told)
