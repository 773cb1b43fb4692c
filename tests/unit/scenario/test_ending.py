"""Each way in which a trace can end, over a server in memory and with short bounds."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from harness.backend.model import ScriptedModel
from harness.backend.wire.responses import ResponsesEncoder
from harness.client.peer import Peer
from harness.scenario.ending import QUIET, Ended, TraceFinisher
from harness.target.profile import Bounds
from harness.trace.marks import ModelCall
from harness.trace.owed_on_connections import OwedOnConnections
from harness.trace.trace import End

from .fake_server import THREAD, TURN, FakeServer, completed, connected, started, thread_started

# For what is waited for to the end of a bound, and for what must not take as long as one.
BOUNDS = Bounds(step=0.3, scenario=1.0, settle=0.4)
LONG = Bounds(step=10, scenario=20, settle=5)


@dataclass
class Stage:
    peer: Peer
    server: FakeServer
    model: ScriptedModel
    owed: OwedOnConnections
    children: set[int] = field(default_factory=set[int])
    before: set[int] = field(default_factory=set[int])

    async def end(self, bounds: Bounds = BOUNDS) -> Ended:
        return await TraceFinisher(
            [self.peer],
            self.model,
            self.owed,
            bounds=bounds,
            barrier=("thread/read", {"threadId": THREAD}),
            children=lambda: self.children,
            before=self.before,
        ).run()

    async def timed(self, bounds: Bounds) -> tuple[Ended, float]:
        recorder = self.peer.recorder
        began = recorder.now()
        ended = await self.end(bounds)
        return ended, recorder.now() - began

    async def turn(self) -> None:
        """A thread with a turn that has begun."""
        self.server.then = {"thread/start": [thread_started()], "turn/start": [started()]}
        await self.peer.request("thread/start", {})
        await self.peer.request("turn/start", {"threadId": THREAD})
        await self.peer.inbox.wait(lambda frame: frame.method == "turn/started")


@asynccontextmanager
async def staged(**bounds: Any) -> AsyncGenerator[Stage]:
    model = ScriptedModel([], ResponsesEncoder())
    with anyio.fail_after(20):
        async with connected(**bounds) as (peer, server, owed):
            yield Stage(peer, server, model, owed)


def error(will_retry: bool) -> dict[str, Any]:
    params = {"threadId": THREAD, "turnId": TURN, "willRetry": will_retry, "error": {}}
    return {"method": "error", "params": params}


async def test_nothing_owed_is_quiescent_after_a_short_silence() -> None:
    async with staged() as stage:
        await stage.turn()
        await stage.server.say(completed())
        ended, seconds = await stage.timed(LONG)
        assert ended == Ended(End.QUIESCENT)
        assert QUIET <= seconds < LONG.settle
        assert stage.owed.open() == []


async def test_barrier_is_sent_and_any_answer_to_it_will_do() -> None:
    async with staged() as stage:
        stage.server.answers["thread/read"] = lambda _: {"code": -1, "message": "no such thread"}
        assert await stage.end() == Ended(End.QUIESCENT)
        assert stage.server.asked("thread/read") == [{"threadId": THREAD}]


async def test_every_gate_is_opened() -> None:
    async with staged() as stage:
        passed = anyio.Event()

        async def stream() -> None:
            await stage.model.gates.pass_through("held")
            passed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream)
            await stage.model.gates.reached("held")
            await stage.end()
            assert passed.is_set()


async def test_what_is_still_asked_is_refused() -> None:
    async with staged() as stage:
        await stage.server.say({"id": 9, "method": "item/fileChange/requestApproval", "params": {}})
        await stage.peer.inbox.wait(lambda frame: frame.id == 9)
        await stage.end()
        assert stage.peer.questions == {}
        (answer,) = [one for one in stage.server.received if one.get("id") == 9]
        assert answer["error"]["message"] == "the scenario is over; nothing is approved any more"


async def test_owed_end_of_a_turn_is_waited_for_until_it_settles() -> None:
    async with staged() as stage:
        await stage.turn()
        ended, seconds = await stage.timed(BOUNDS)
        assert ended == Ended(End.QUIESCENT)
        assert seconds >= BOUNDS.settle
        assert [str(one) for one in stage.owed.open()] == [f"turn/completed for turn {TURN}"]


async def test_owed_end_that_comes_in_time_is_met() -> None:
    async with staged() as stage:
        await stage.turn()
        stage.server.then["thread/read"] = [completed()]
        ended, seconds = await stage.timed(LONG)
        assert ended == Ended(End.QUIESCENT)
        assert seconds < LONG.settle
        assert stage.owed.open() == []


async def test_unanswered_barrier_is_owed_too() -> None:
    async with staged() as stage:
        stage.server.answers["thread/read"] = lambda _: None
        ended, seconds = await stage.timed(BOUNDS)
        assert ended == Ended(End.QUIESCENT)
        assert seconds >= BOUNDS.settle > BOUNDS.step
        assert [str(one) for one in stage.owed.open()] == ["answer for request thread/read id 1"]


async def test_open_model_stream_at_the_bound_is_our_time_out() -> None:
    async with staged() as stage:
        await stage.turn()
        stage.model.open_streams = 1
        ended = await stage.end()
        assert ended.end is End.TIMED_OUT
        assert ended.outstanding == ("1 open model stream(s)",)
        assert ended.liveness == ""


async def test_open_model_stream_does_not_matter_when_nothing_is_owed() -> None:
    async with staged() as stage:
        stage.model.open_streams = 1
        assert await stage.end() == Ended(End.QUIESCENT)


async def test_child_process_at_the_bound_is_the_servers_liveness() -> None:
    async with staged() as stage:
        await stage.turn()
        stage.children, stage.before = {4, 7}, {4}
        ended = await stage.end()
        assert ended.end is End.TIMED_OUT
        assert ended.liveness == "child processes 7"


async def test_child_process_from_before_does_not_count() -> None:
    async with staged() as stage:
        await stage.turn()
        stage.children = stage.before = {4}
        assert (await stage.end()).end is End.QUIESCENT


async def test_announced_retry_keeps_the_server_busy_until_the_next_model_call() -> None:
    async with staged() as stage:
        await stage.turn()
        await stage.server.say(error(will_retry=True))
        await stage.peer.inbox.wait(lambda frame: frame.method == "error")
        ended = await stage.end()
        assert ended.liveness == "a retry that was announced"
    async with staged() as stage:
        await stage.turn()
        await stage.server.say(error(will_retry=True))
        await stage.peer.inbox.wait(lambda frame: frame.method == "error")
        stage.peer.recorder.mark(ModelCall(call=1))
        assert await stage.end() == Ended(End.QUIESCENT)


async def test_messages_without_end_are_liveness_at_the_bound() -> None:
    async with staged() as stage:
        await stage.turn()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_murmur, stage)
            expected = Ended(End.TIMED_OUT, (), liveness="it keeps sending messages")
            assert await stage.end(Bounds(step=0.3, scenario=0.3, settle=0.2)) == expected
            tasks.cancel_scope.cancel()


async def _murmur(stage: Stage) -> None:
    """Say something as soon as what was said before has arrived, without end."""
    for number in itertools.count():
        seen = len(stage.peer.inbox.frames)
        await stage.server.say({"method": "weather/changed", "params": {"number": number}})
        await stage.peer.inbox.wait(lambda frame: frame.method == "weather/changed", start=seen)


async def test_server_that_left_before_the_end_has_exited() -> None:
    async with staged() as stage:
        await stage.turn()
        await stage.server.leave()
        assert await stage.end() == Ended(End.EXITED)


async def test_server_that_leaves_instead_of_answering_the_barrier_has_exited() -> None:
    async with staged() as stage:
        await stage.turn()
        stage.server.leave_at = "thread/read"
        assert await stage.end() == Ended(End.EXITED)


async def test_server_that_leaves_while_it_settles_has_exited() -> None:
    async with staged() as stage:
        await stage.turn()
        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await stage.peer.inbox.wait(lambda frame: frame.id == 3)  # the barrier's
                await stage.server.leave()

            tasks.start_soon(leave)
            assert await stage.end() == Ended(End.EXITED)


async def test_flood_over_the_bound_of_a_trace_is_closed_by_us() -> None:
    async with staged(max_frames=50) as stage:
        await stage.turn()
        await stage.server.write(b'{"method":"x","params":{}}\n' * 60)
        await stage.peer.ended.wait()
        assert await stage.end() == Ended(End.CLOSED)


async def test_trace_that_our_own_question_fills_is_closed_by_us() -> None:
    async with staged(max_frames=8) as stage:
        await stage.turn()
        for _ in range(2):
            await stage.server.say({"method": "x", "params": {}})
        await stage.peer.inbox.wait(lambda _: len(stage.peer.inbox.frames) == 6)
        assert await stage.end() == Ended(End.CLOSED)
