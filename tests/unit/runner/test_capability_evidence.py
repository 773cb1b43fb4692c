"""Evidence from a scenario's own run that a probed target lacks a feature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.profile import Profile
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.play.capability_evidence import absent_needs
from harness.play.run import Run
from harness.scenario.client_steps import RequestStep
from harness.scenario.ending import TraceEnding
from harness.scenario.identity import bundled_folder
from harness.scenario.loader import Loaded, find_scenarios, load, load_text
from harness.scenario.player import Cast, StepFailure
from harness.scenario.steps.context import FailureKind
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import End
from harness.trace.views import conversation_of

Json = dict[str, Any]
SPEC = Profile(name="p")
ASK = "item/commandExecution/requestApproval"
REFUSED = {"code": "E_NO", "why": "not today"}


def loaded(needs: str, steps: str = "", model: str = "[]") -> Loaded:
    head = f"title: one\nneeds: [{needs}]\nmodel: {model}\nclient:\n  - start_thread: {{as: t}}\n"
    return load_text(head + steps, name="one")


class Talk:
    """A conversation of one thread, and the calls of the model in between."""

    def __init__(self, script: list[Json] | None = None) -> None:
        self.recorder = Recorder()
        script = script or [{"reply": [{"message": "x"}]}] * 4
        self.model = ScriptedModel(
            loaded("", model=json.dumps(script)).scenario.scripts(),
            ResponsesEncoder(),
            mark=self.recorder.mark,
        )
        self._id = 0

    def ask(self, method: str, answer: Json | None, error: Any = REFUSED, **params: Any) -> Talk:
        """A request of ours; None for an answer is a refusal, in a form of the server's own."""
        self._id += 1
        asked = {"method": method, "id": self._id, "params": {"threadId": "t", **params}}
        self.recorder.record(json.dumps(asked).encode(), Direction.TO_TARGET)
        said = {"error": error} if answer is None else {"result": answer}
        self.recorder.record(json.dumps({"id": self._id, **said}).encode(), Direction.FROM_TARGET)
        return self

    def turn(self, name: str) -> Talk:
        """A turn that we start."""
        began = {"id": name, "status": "inProgress", "items": []}
        return self.ask("turn/start", {"turn": began}, input=[])

    def tell(self, method: str, **params: Any) -> Talk:
        """A notification."""
        told = {"method": method, "params": {"threadId": "t", **params}}
        self.recorder.record(json.dumps(told).encode(), Direction.FROM_TARGET)
        return self

    def call(self) -> Talk:
        """A call of the model."""
        self.model.answer(b'{"input": "x"}')
        return self

    def lacks(self, one: Loaded, unmet: StepFailure | None = None) -> list[str]:
        """The needs of a scenario of which this was the run that it does not offer."""
        trace, ending = self.recorder.trace, TraceEnding(End.QUIESCENT)
        run = Run(trace, Cast(), unmet, ending, self.model, Path("/x"), "", 1.0)
        return absent_needs(one, run, conversation_of(trace), SPEC)


def bundled_scenarios() -> list[Loaded]:
    folder = bundled_folder()
    return [load(file, root=folder) for _, file in find_scenarios([folder])]


ANSWER = f"  - start_turn: {{thread: t, text: x, as: u}}\n  - answer: {{to: {ASK}, decision: accept"


def test_silence_shows_no_approval_where_the_scenario_waits_for_the_question() -> None:
    waiting = loaded("command-approval", f"{ANSWER}}}\n")
    assert Talk().turn("u").lacks(waiting) == ["command-approval"]


def test_silence_where_the_client_only_stands_ready_may_be_the_breach() -> None:
    ready = loaded("command-approval", f"{ANSWER}, standing: true}}\n")
    assert Talk().turn("u").lacks(ready) == []


def test_method_that_the_text_does_not_have_may_be_refused_in_any_form() -> None:
    review = loaded("review")
    assert Talk().ask("review/start", None).lacks(review) == ["review"]
    assert Talk().ask("review/start", {"turn": {"id": "r"}}).lacks(review) == []
    assert Talk().lacks(review) == []


@pytest.mark.parametrize(
    ("need", "method"),
    [
        ("thread-name", "thread/name/set"),
        ("archive", "thread/unarchive"),
        ("history", "thread/rollback"),
        ("subscription", "thread/unsubscribe"),
    ],
)
def test_request_whose_params_the_text_does_not_show_may_be_refused(need: str, method: str) -> None:
    one = loaded(need)
    assert Talk().ask(method, None).lacks(one) == [need]
    assert Talk().ask(method, {}).ask(method, None).lacks(one) == []


def test_request_whose_params_are_shown_may_not() -> None:
    assert Talk().ask("thread/archive", None).lacks(loaded("archive")) == []


def test_retry_that_an_interrupt_forestalls_is_offered() -> None:
    retry = loaded("model-retry")
    talk = Talk().turn("u").call().tell("error", turnId="u", willRetry=True, error={})
    assert talk.lacks(retry) == ["model-retry"]
    assert talk.ask("turn/interrupt", {}, turnId="u").lacks(retry) == []
    kept_on = Talk().turn("u").call().ask("turn/interrupt", {}, turnId="u")
    assert kept_on.lacks(retry) == ["model-retry"]


@pytest.mark.parametrize("need", ["plan", "web-search", "image-view", "reasoning-raw"])
def test_item_that_an_interrupt_may_overtake_is_not_missing(need: str) -> None:
    one = loaded(need)
    talk = Talk().turn("u").call()
    assert talk.lacks(one) == [need]
    assert talk.ask("turn/interrupt", {}, turnId="u").lacks(one) == []
    assert talk.turn("v").call().lacks(one) == [need]


def test_reasoning_that_an_interrupt_may_overtake_is_not_missing() -> None:
    reply = [{"reply": [{"reasoning": {"summary": ["x"]}}, {"message": "x"}]}]
    one = loaded("reasoning", model=json.dumps(reply))
    talk = Talk(reply).turn("u").call()
    assert talk.lacks(one) == ["reasoning"]
    assert talk.ask("turn/interrupt", {}, turnId="u").lacks(one) == []


COMPACTION = "compaction, compaction-by-model, compaction-turn"


def compacted(*, item: bool = False, turn: bool = False, call: bool = False) -> Talk:
    """A turn, a compaction that shows itself so, and another turn."""
    talk = Talk().turn("u").call().ask("thread/compact/start", {})
    if turn:
        talk.tell("turn/started", turn={"id": "c", "items": []})
    if call:
        talk.call()
    if item:
        about = {"turnId": "c" if turn else "u", "item": {"id": "i", "type": "contextCompaction"}}
        talk.tell("item/started", **about).tell("item/completed", **about)
    if turn:
        talk.tell("turn/completed", turn={"id": "c", "status": "completed", "items": []})
    return talk.turn("v").call()


def test_compaction_is_offered_as_far_as_it_shows() -> None:
    all_three = loaded(COMPACTION)
    assert compacted(item=True, turn=True, call=True).lacks(all_three) == []
    assert compacted(item=True, call=True).lacks(all_three) == ["compaction-turn"]
    assert compacted(item=True, turn=True).lacks(all_three) == ["compaction-by-model"]
    assert compacted(item=True).lacks(all_three) == ["compaction-by-model", "compaction-turn"]
    assert compacted().lacks(all_three) == COMPACTION.split(", ")


def test_compaction_that_hides_its_item_is_offered_all_the_same() -> None:
    # Else the breach that its scenarios are about would excuse it.
    assert compacted(call=True).lacks(loaded("compaction")) == []
    assert compacted(turn=True).lacks(loaded("compaction")) == []


ROLLBACK = "  - request: {method: thread/rollback, params: {threadId: t, numTurns: 5}, expect: "
UNKNOWN = (
    {"code": -32601, "message": "no"},
    {"code": -32600, "message": "Invalid request: unknown variant `thread/rollback`, expected …"},
)


@pytest.mark.parametrize("expect", ["any", "error"])
def test_refusal_that_the_scenario_allows_shows_nothing(expect: str) -> None:
    allowed = loaded("history", f"{ROLLBACK}{expect}}}\n")
    assert Talk().ask("thread/rollback", None).lacks(allowed) == []
    for unknown in UNKNOWN:
        assert Talk().ask("thread/rollback", None, unknown).lacks(allowed) == ["history"]
    demanded = loaded("history", f"{ROLLBACK}{expect}}}\n{ROLLBACK}result}}\n")
    assert Talk().ask("thread/rollback", None).lacks(demanded) == ["history"]


def test_value_that_is_an_unknown_variant_is_not_an_unknown_method() -> None:
    allowed = loaded("history", f"{ROLLBACK}any}}\n")
    error = {"code": -32600, "message": "unknown variant `five`"}
    assert Talk().ask("thread/rollback", None, error).lacks(allowed) == []


def test_no_bundled_scenario_takes_an_allowed_refusal_for_absence() -> None:
    played = 0
    for scenario in bundled_scenarios():
        asked = [step.request for step in scenario.scenario.steps if isinstance(step, RequestStep)]
        methods = {one.method for one in asked} - {
            one.method for one in asked if one.expect == "result"
        }
        talk = Talk()
        for request in asked:
            if request.method in methods:
                talk.ask(request.method, None)
        # Turns are left out: what they do not show is another matter.
        needs = {"archive", "compaction", "history", "review", "subscription", "thread-name"}
        assert needs.isdisjoint(talk.lacks(scenario)), scenario.id
        played += bool(methods and needs & set(scenario.scenario.needs))
    assert played > 5


def test_no_bundled_scenario_without_a_turn_takes_silence_for_absence() -> None:
    without_turns = [one for one in bundled_scenarios() if not one.scenario.starts_turns]
    without_turns.append(loaded("dynamic-tools, plan"))
    assert {one.id: found for one in without_turns if (found := Talk().lacks(one))} == {}


def test_run_that_stopped_for_want_of_one_need_is_silent_about_the_others() -> None:
    several = loaded(
        "deltas, several-clients, dynamic-tools", "  - start_turn: {thread: t, text: x, as: u}\n"
    )
    lacking = StepFailure(FailureKind.NOT_OFFERED, "connect", 4, "", capability="several-clients")
    assert Talk().lacks(several, lacking) == ["several-clients"]
    assert Talk().turn("u").lacks(several) == ["deltas", "dynamic-tools"]


def test_need_that_depends_on_what_is_not_offered_is_missing() -> None:
    approval = loaded("command-approval", f"{ANSWER}}}\n")
    no_tool = StepFailure(FailureKind.NOT_OFFERED, "wait", 4, "", capability="command-execution")
    assert Talk().turn("u").lacks(approval, no_tool) == ["command-approval"]


def test_compaction_that_is_refused_where_it_may_be_is_offered() -> None:
    step = "  - request: {method: thread/compact/start, params: {threadId: t}, expect: any}\n"
    allowed = loaded("compaction", step)
    assert Talk().turn("u").call().ask("thread/compact/start", None).lacks(allowed) == []
    assert Talk().ask("thread/compact/start", None).lacks(loaded("compaction")) == ["compaction"]
    assert compacted().lacks(allowed) == ["compaction"]
