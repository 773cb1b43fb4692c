"""Each way in which a client step can fail, and the messages that steps send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from harness.client.peer import Peer
from harness.client.target.profile import Bounds
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.loader import load_text
from harness.scenario.player import Cast, Player, StepFailure
from harness.scenario.steps.context import FailureKind
from harness.scenario.steps.wait_targets import ANSWER
from harness.trace.marks import Setup, StepBegins

from .fake_server import THREAD, TURN, FakeServer, completed, connected

START = """
title: a scenario
model: [{reply: [{message: {deltas: [a, {hold: g}]}}]}]
client:
  - start_thread: {as: t}
"""
TURNING = f'{START}  - start_turn: {{thread: t, text: "hello", as: u}}\n'
SHORT, LONG = Bounds(step=0.5), Bounds(step=10)


def player(text: str, peer: Peer, bounds: Bounds = LONG, **options: Any) -> Player:
    loaded = load_text(text)
    model = ScriptedModel(loaded.scenario.scripts(), ResponsesEncoder())
    options = {"cast": Cast(), "thread_params": {}, **options}
    return Player(loaded, peer, model, cwd=Path("/somewhere"), bounds=bounds, **options)


async def play(text: str, prepare: Any = None, bounds: Bounds = LONG) -> StepFailure | None:
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            if prepare:
                prepare(server)
            return await player(text, peer, bounds).play()
    raise AssertionError("a bounded block was left without a result")


async def test_steps_send_what_they_say_and_keep_the_ids() -> None:
    text = TURNING + (
        "  - wait: {turn: u, status: [completed, failed]}\n"
        "  - read_thread: {thread: t, include_turns: true}\n"
        "  - read_thread: {thread: t}\n"
        "  - interrupt: {turn: u}\n"
        "settings: {model: m}\n"
    )
    async with connected() as (peer, server, _):
        server.then["turn/start"] = [completed()]
        one = player(text, peer, thread_params={"x": 1}, markers={"t": "#t#"})
        assert await one.play() is None
        assert server.asked("thread/start") == [
            {
                "cwd": "/somewhere",
                "approvalPolicy": "never",
                "sandbox": "danger-full-access",
                "model": "m",
                "x": 1,
            }
        ]
        (turn,) = server.asked("turn/start")
        assert turn["threadId"] == THREAD
        texts = [part["text"] for part in turn["input"]]
        assert texts == ["#t#", "hello"]
        assert server.asked("thread/read") == [
            {"threadId": THREAD, "includeTurns": True},
            {"threadId": THREAD},
        ]
        assert server.asked("turn/interrupt") == [{"threadId": THREAD, "turnId": TURN}]
        assert one.cast.turns == {"u": TURN}
        assert one.cast.threads == {"t": THREAD}


async def test_step_without_an_answer_is_a_time_out_at_its_line() -> None:
    def silent(server: FakeServer) -> None:
        server.answers["turn/start"] = lambda _: None

    unmet = await play(TURNING, silent, SHORT)
    message = "waited 0.5 s for an answer; it did not come"
    assert unmet == StepFailure(FailureKind.TIMEOUT, "start_turn", 6, message, wait_target=ANSWER)


async def test_error_for_an_answer_is_a_refusal_with_its_message() -> None:
    def refuse(server: FakeServer) -> None:
        server.answers["thread/start"] = lambda _: {"code": -32600, "message": "not today"}

    unmet = await play(START, refuse)
    message = "thread/start was answered by an error: not today"
    assert unmet == StepFailure(FailureKind.REFUSED, "start_thread", 5, message)


async def test_answer_without_an_id_is_a_refusal() -> None:
    def nameless(server: FakeServer) -> None:
        server.answers["thread/start"] = lambda _: {"thread": {}}

    unmet = await play(START, nameless)
    assert unmet == StepFailure(
        FailureKind.REFUSED, "start_thread", 5, "the answer to thread/start has no thread.id"
    )


async def test_a_limit_of_time_runs_from_the_message_of_the_step_before() -> None:
    steps = (
        "  - wait: {notification: turn/started, within: 10s}\n"
        "  - wait: {turn: u, within: 0.0001ms}\n"
        "  - open: g\n"
        "  - request: {method: thread/read, params: {}, as: r, wait: false}\n"
        "  - wait: {answer: r, within: 10s}\n"
        "  - open: g\n"
        "  - wait: {turn: u, within: 10s}\n"
    )
    async with connected() as (peer, server, _):
        started = {"method": "turn/started", "params": {"threadId": THREAD, "turn": {"id": TURN}}}
        server.then["turn/start"] = [started, completed()]
        one = player(TURNING + steps, peer)
        assert await one.play() is None
    frames = {frame.method: frame.at for frame in peer.recorder.trace.frames}
    turn, end, answer, later = one.cast.times
    assert [(times.limit.name, times.limit.step) for times in one.cast.times] == [
        ("turn/start -> turn/started", "scenario:7"),
        ("turn/started -> turn/completed", "scenario:8"),
        ("thread/read -> an answer", "scenario:11"),
        ("the step open -> turn/completed", "scenario:13"),
    ]
    assert turn.seconds == (frames["turn/started"] - frames["turn/start"],)
    assert end.seconds == (frames["turn/completed"] - frames["turn/started"],)
    assert (turn.is_slow, end.is_slow, answer.is_slow) == (False, True, False)
    # It came before the step that it is counted from.
    assert later.seconds == (0.0,)


async def test_server_that_leaves_during_a_step_is_a_crash() -> None:
    def leave(server: FakeServer) -> None:
        server.leave_at = "turn/start"

    unmet = await play(TURNING, leave)
    assert unmet is not None
    assert (unmet.kind, unmet.step, unmet.line) == (FailureKind.CRASH, "start_turn", 6)


async def test_turn_that_ends_otherwise_is_said_with_its_cause() -> None:
    def fail(server: FakeServer) -> None:
        error = {"message": "the model is gone"}
        server.then["turn/start"] = [completed(status="failed", error=error)]

    unmet = await play(TURNING + "  - wait: {turn: u, status: completed}\n", fail)
    assert unmet == StepFailure(
        FailureKind.OTHER_END,
        "wait",
        7,
        "turn u ended as failed (the model is gone); expected completed",
    )


async def test_end_of_another_turn_is_no_end_of_this_one() -> None:
    def other(server: FakeServer) -> None:
        server.then["turn/start"] = [completed("turn_99")]

    unmet = await play(TURNING + "  - wait: {turn: u}\n", other, SHORT)
    assert unmet is not None
    assert unmet.message == "waited 0.5 s for the end of turn u; it did not come"


async def test_notification_is_waited_for_by_its_values() -> None:
    def say(server: FakeServer) -> None:
        server.then["thread/start"] = [
            {"method": "item/started", "params": {"item": {"type": "reasoning"}}},
            {"method": "item/started", "params": {"item": {"type": "agentMessage"}}},
        ]

    found = "  - wait: {notification: item/started, where: {item.type: agentMessage}}\n"
    assert await play(START + found, say) is None
    missing = "  - wait: {notification: item/started, where: {item.type: plan}}\n"
    unmet = await play(START + missing, say, SHORT)
    assert unmet is not None
    assert unmet.message == (
        'waited 0.5 s for item/started where item.type: "plan"; 2 came, the nearest with '
        'params.item.type: "agentMessage"'
    )


async def test_gate_that_the_stream_does_not_reach_is_a_time_out() -> None:
    unmet = await play(START + "  - wait: {gate: g}\n", None, SHORT)
    assert unmet is not None
    assert unmet.kind is FailureKind.TIMEOUT
    assert unmet.message == "waited 0.5 s for the model's stream at gate g; it did not come"


async def test_server_that_leaves_while_a_gate_is_waited_for_is_a_crash() -> None:
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            server.then["thread/start"] = []
            server.leave_at = "thread/read"
            text = START + "  - wait: {gate: g}\n"
            async with anyio.create_task_group() as tasks:

                async def leave() -> None:
                    await peer.inbox.wait(lambda frame: frame.id == 1)
                    await server.leave()

                tasks.start_soon(leave)
                unmet = await player(text, peer).play()
                assert unmet is not None
                assert (unmet.kind, unmet.step) == (FailureKind.CRASH, "wait")


async def test_first_step_that_fails_ends_the_script() -> None:
    async with connected() as (peer, server, _):
        server.answers["turn/start"] = lambda _: {"code": 1, "message": "no"}
        unmet = await player(TURNING + "  - read_thread: {thread: t}\n", peer).play()
        assert unmet is not None
        assert server.asked("thread/read") == []
        steps = [mark.body.name for mark in peer.recorder.trace.marks_of(StepBegins)]
        assert steps == ["start_thread", "start_turn"]


async def test_setup_steps_are_marked_as_such() -> None:
    text = """
title: a scenario
setup:
  - start_thread: {as: t}
client:
  - read_thread: {thread: t}
"""
    async with connected() as (peer, _, __):
        assert await player(text, peer).play() is None
        assert [mark.body for mark in peer.recorder.trace.marks] == [
            Setup(active=True),
            StepBegins("start_thread", 4),
            Setup(active=False),
            StepBegins("read_thread", 6),
        ]
