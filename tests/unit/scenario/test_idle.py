"""Waiting until nothing runs on a thread, and for turns whose ids other threads have too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.client.target.profile import Bounds
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.loader import load_text
from harness.scenario.player import Player, StepFailure
from harness.scenario.steps.context import FailureKind

from .fake_server import THREAD, TURN, completed, connected, started

Json = dict[str, Any]
HEAD = "title: a scenario\nclient:\n  - start_thread: {as: t}\n"
IDLE = "  - request: {method: x/y}\n  - wait: {idle: t}\n"
OTHER = "thr_9"


def status(word: str, thread: str = THREAD) -> Json:
    told = {"type": word} | ({"activeFlags": []} if word == "active" else {})
    return {"method": "thread/status/changed", "params": {"threadId": thread, "status": told}}


def of(thread: str, message: Json) -> Json:
    return {**message, "params": {**message["params"], "threadId": thread}}


async def play(steps: str, *, then: list[Json], step: float = 10) -> StepFailure | None:
    """Play steps on a server that says this after the method x/y."""
    loaded = load_text(HEAD + steps)
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            server.answers["x/y"] = lambda _: {}
            server.then["x/y"] = then
            model = ScriptedModel(loaded.scenario.scripts(), ResponsesEncoder())
            bounds = Bounds(step=step)
            player = Player(loaded, peer, model, cwd=Path("/x"), bounds=bounds, thread_params={})
            return await player.play()
    raise AssertionError("a bounded block was left without a result")


@pytest.mark.parametrize(
    "then",
    [
        [],
        [started(), completed()],
        [status("active"), status("idle")],
        [status("active"), started(), completed(), status("systemError")],
        [of(OTHER, started()), status("active", OTHER)],
    ],
)
async def test_thread_on_which_nothing_runs_is_not_waited_for(then: list[Json]) -> None:
    # What is told before an answer has been read with it.
    steps = IDLE.replace("  - wait", "  - request: {method: thread/read}\n  - wait")
    assert await play(steps, then=then) is None


@pytest.mark.parametrize(
    ("then", "awaited"),
    [
        ([started()], f"the end of turn {TURN}"),
        ([started("turn_7"), completed()], "the end of turn turn_7"),
        ([started(), of(OTHER, completed())], f"the end of turn {TURN}"),
        ([status("idle"), status("active")], "the end of its being active"),
    ],
)
async def test_thread_on_which_something_runs_is_waited_for(then: list[Json], awaited: str) -> None:
    steps = IDLE.replace("  - wait", "  - request: {method: thread/read}\n  - wait")
    unmet = await play(steps, then=then, step=0.5)
    assert unmet is not None
    assert (unmet.kind, unmet.wait_target.words) == (FailureKind.TIMEOUT, awaited)


async def test_end_of_a_turn_of_another_thread_is_not_that_of_one_with_the_same_id() -> None:
    steps = "  - start_turn: {thread: t, text: hello, as: u}\n  - request: {method: x/y}\n"
    wait = "  - wait: {turn: u, status: completed}\n"
    theirs, ours = of(OTHER, completed(status="failed")), completed()
    assert await play(steps + wait, then=[theirs, ours]) is None
    unmet = await play(steps + wait, then=[theirs], step=0.5)
    assert unmet is not None
    assert unmet.kind is FailureKind.TIMEOUT
    nameless = {**ours, "params": {"turn": ours["params"]["turn"]}}
    assert await play(steps + wait, then=[nameless]) is None
