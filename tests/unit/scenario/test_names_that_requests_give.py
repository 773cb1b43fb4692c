"""A request with `as` names the thread or turn that its answer carries; places are filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.client.target.profile import Bounds
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.loader import ScenarioError, load_text
from harness.scenario.player import Player, StepFailure
from harness.scenario.steps.context import FailureKind

from .fake_server import FakeServer, connected

HEAD = "title: a scenario\nclient:\n  - start_thread: {as: t}\n"
FORK = "  - request: {method: thread/fork, params: {threadId: $t.thread.id}, as: f}\n"


async def play(steps: str, prepare: Any) -> tuple[StepFailure | None, FakeServer]:
    loaded = load_text(HEAD + steps)
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            prepare(server)
            model = ScriptedModel(loaded.scenario.scripts(), ResponsesEncoder())
            player = Player(
                loaded,
                peer,
                model,
                cwd=Path("/x"),
                bounds=Bounds(step=10),
                thread_params={},
                turn_params={"mode": "plan"},
                placeholders={"cwd": "/w"},
            )
            return await player.play(), server
    raise AssertionError("a bounded block was left without a result")


def forking(answer: dict[str, Any]) -> Any:
    def prepare(server: FakeServer) -> None:
        server.answers["thread/fork"] = lambda _: answer

    return prepare


async def test_a_forked_thread_is_spoken_to_by_its_name() -> None:
    steps = FORK + '  - start_turn: {thread: f, text: "on", as: u}\n  - read_thread: {thread: f}\n'
    unmet, server = await play(steps, forking({"thread": {"id": "thr_9"}}))
    assert unmet is None
    (turn,) = server.asked("turn/start")
    assert (turn["threadId"], turn["mode"]) == ("thr_9", "plan")
    assert server.asked("thread/read") == [{"threadId": "thr_9"}]


async def test_an_answer_that_names_no_thread_is_said_where_the_name_is_used() -> None:
    unmet, _ = await play(FORK + "  - read_thread: {thread: f}\n", forking({}))
    assert unmet is not None
    assert (unmet.kind, unmet.line) == (FailureKind.REFUSED, 5)
    assert unmet.message == "the answer that names thread f has no thread.id"


async def test_a_review_is_a_turn_that_can_be_waited_for() -> None:
    steps = (
        "  - request: {method: review/start, params: {threadId: $t.thread.id}, as: r}\n"
        "  - interrupt: {turn: r}\n"
    )
    _, server = await play(steps, reviewing)
    assert server.asked("turn/interrupt") == [{"threadId": "thr_1", "turnId": "turn_7"}]


def reviewing(server: FakeServer) -> None:
    answer = {"turn": {"id": "turn_7"}, "reviewThreadId": "thr_1"}
    server.answers["review/start"] = lambda _: answer


def listing(server: FakeServer) -> None:
    server.answers["skills/list"] = lambda _: {"data": []}


async def test_places_are_filled_into_what_is_sent() -> None:
    steps = '  - request: {method: skills/list, params: {cwds: ["{cwd}/a", "{other}"]}}\n'
    _, server = await play(steps, listing)
    assert server.asked("skills/list") == [{"cwds": ["/w/a", "{other}"]}]


def test_a_name_of_another_method_is_no_thread() -> None:
    steps = "  - request: {method: thread/list, as: page}\n  - read_thread: {thread: page}\n"
    with pytest.raises(ScenarioError, match="unknown thread 'page'"):
        load_text(HEAD + steps)
