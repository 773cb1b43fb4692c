"""Standing answers, and answers that are sent twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio

from harness.client.peer import Peer
from harness.client.target.profile import Bounds
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.loader import load_text
from harness.scenario.player import Player, StepFailure
from harness.scenario.steps.context import FailureKind

from .fake_server import THREAD, FakeServer, completed, connected

APPROVAL, FILES = "item/commandExecution/requestApproval", "item/fileChange/requestApproval"
HEAD = """
title: a scenario
client:
  - start_thread: {as: t}
"""
TURN = '  - start_turn: {thread: t, text: "hello", as: u}\n'
STANDING = f"  - answer: {{to: {APPROVAL}, decision: accept, standing: true}}\n"
WAIT = "  - wait: {turn: u, status: completed}\n"
READ = "  - read_thread: {thread: t}\n"


def asking(identifier: int, method: str = APPROVAL, **params: Any) -> dict[str, Any]:
    return {"id": identifier, "method": method, "params": {"threadId": THREAD, **params}}


async def play(
    steps: str, *said: dict[str, Any], bounds: Bounds | None = None
) -> tuple[StepFailure | None, list[dict[str, Any]], list[bool]]:
    """Play the steps; return the failure, our answers at the server, and which were deliberate."""
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            server.then["turn/start"] = list(said)
            unmet = await _player(HEAD + steps, peer, bounds or Bounds(step=10)).play()
            sent = [frame for frame in peer.recorder.trace.frames if not frame.from_target]
            ours = [frame.deliberate for frame in sent if "method" not in json.loads(frame.raw)]
            return unmet, _answers(server), ours
    raise AssertionError("a bounded block was left without a result")


def _player(text: str, peer: Peer, bounds: Bounds) -> Player:
    loaded = load_text(text)
    model = ScriptedModel(loaded.scenario.scripts(), ResponsesEncoder())
    return Player(loaded, peer, model, cwd=Path("/x"), bounds=bounds, thread_params={})


def _answers(server: FakeServer) -> list[dict[str, Any]]:
    return [one for one in server.received if "method" not in one]


async def test_standing_answer_is_given_to_each_request_that_comes_while_a_step_waits() -> None:
    said = (asking(7, itemId="a"), asking(8, itemId="b"), asking(9, FILES), completed())
    unmet, answers, _ = await play(TURN + STANDING + WAIT + READ, *said)
    assert unmet is None
    assert answers == [
        {"id": 7, "result": {"decision": "accept"}},
        {"id": 8, "result": {"decision": "accept"}},
    ]


async def test_standing_answer_waits_for_nothing() -> None:
    unmet, answers, _ = await play(STANDING + TURN + WAIT, completed())
    assert unmet is None
    assert answers == []


async def test_of_two_standing_answers_one_is_given() -> None:
    declining = STANDING.replace("accept", "decline")
    said = (asking(7), completed())
    unmet, answers, _ = await play(STANDING + declining + TURN + WAIT + READ, *said)
    assert unmet is None
    assert len(answers) == 1


async def test_standing_answer_holds_for_what_where_says() -> None:
    only_b = STANDING.replace("standing", "where: {itemId: b}, standing")
    said = (asking(7, itemId="a"), asking(8, itemId="b"), completed())
    unmet, answers, _ = await play(only_b + TURN + WAIT + READ, *said)
    assert unmet is None
    assert [one["id"] for one in answers] == [8]


async def test_standing_error_is_an_error() -> None:
    standing = f"  - answer: {{to: {APPROVAL}, error: {{code: 5, message: no}}, standing: true}}\n"
    unmet, answers, _ = await play(standing + TURN + WAIT + READ, asking(7), completed())
    assert unmet is None
    assert answers == [{"id": 7, "error": {"code": 5, "message": "no"}}]


async def test_end_of_the_connection_is_told_by_the_step_not_by_the_standing_answer() -> None:
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            server.leave_at = "thread/read"
            unmet = await _player(HEAD + STANDING + READ, peer, Bounds(step=10)).play()
            assert unmet is not None
            assert (unmet.kind, unmet.step) == (FailureKind.CRASH, "read_thread")


async def test_answer_is_given_again_on_purpose() -> None:
    first = f"  - answer: {{to: {APPROVAL}, decision: accept}}\n"
    again = f"  - answer: {{to: {APPROVAL}, decision: decline, again: true}}\n"
    unmet, answers, deliberate = await play(TURN + first + again + READ, asking(7))
    assert unmet is None
    assert [one["result"]["decision"] for one in answers] == ["accept", "decline"]
    assert deliberate == [False, True]


async def test_a_question_never_answered_cannot_be_answered_again() -> None:
    again = f"  - answer: {{to: {APPROVAL}, decision: decline, again: true}}\n"
    unmet, answers, _ = await play(TURN + again, asking(7), bounds=Bounds(step=0.5))
    assert unmet is not None
    assert unmet.message.startswith("waited 0.5 s for an answered server request")
    assert answers == []
