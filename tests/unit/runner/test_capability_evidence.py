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
from harness.scenario.ending import TraceEnding
from harness.scenario.loader import Loaded, load_text
from harness.scenario.player import Cast
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

    def ask(self, method: str, answer: Json | None, **params: Any) -> Talk:
        """A request of ours; None for an answer is a refusal in a form of the server's own."""
        self._id += 1
        asked = {"method": method, "id": self._id, "params": {"threadId": "t", **params}}
        self.recorder.record(json.dumps(asked).encode(), Direction.TO_TARGET)
        said = {"error": REFUSED} if answer is None else {"result": answer}
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

    def lacks(self, one: Loaded) -> list[str]:
        """The needs of a scenario of which this was the run that it does not offer."""
        trace = self.recorder.trace
        run = Run(trace, Cast(), None, TraceEnding(End.QUIESCENT), self.model, Path("/x"), "", 1.0)
        return absent_needs(one, run, conversation_of(trace), SPEC)


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
