"""Each way in which a trace can end, over a server in memory and with short bounds."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from harness.client.peer import Peer
from harness.client.target.profile import Bounds
from harness.client.transport.streams import LineTransport
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.ending import (
    POLL_SECONDS,
    QUIET_SECONDS,
    RECHECK_SECONDS,
    TraceEnding,
    TraceFinisher,
)
from harness.trace.connection_ledgers import ConnectionLedgers
from harness.trace.frame import Kind
from harness.trace.marks import Closed, ModelCall, Settled
from harness.trace.trace import End

from .fake_server import (
    THREAD,
    TURN,
    FakeServer,
    completed,
    connected,
    further,
    started,
    thread_started,
)

# For what is waited for to the end of a bound, and for what must not take as long as one.
BOUNDS = Bounds(step=0.3, scenario=1.0, settle=0.4)
LONG = Bounds(step=10, scenario=20, settle=5)


@dataclass
class Stage:
    peer: Peer
    server: FakeServer
    model: ScriptedModel
    owed: ConnectionLedgers
    children: set[int] = field(default_factory=set[int])
    before: set[int] = field(default_factory=set[int])
    others: list[Peer] = field(default_factory=list[Peer])
    main_is_open: bool = True

    async def end(self, bounds: Bounds = BOUNDS) -> TraceEnding:
        return await TraceFinisher(
            [self.peer, *self.others] if self.main_is_open else self.others,
            self.model,
            self.owed,
            bounds=bounds,
            barrier=("thread/read", {"threadId": THREAD}),
            children=lambda: self.children,
            initial_children=self.before,
            main_is_open=self.main_is_open,
        ).run()

    async def timed(self, bounds: Bounds) -> tuple[TraceEnding, float]:
        recorder = self.peer.recorder
        began = recorder.elapsed_seconds()
        ended = await self.end(bounds)
        return ended, recorder.elapsed_seconds() - began

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


@asynccontextmanager
async def staged_for_two(*, turn: bool = True) -> AsyncGenerator[tuple[Stage, FakeServer]]:
    """Two clients of one thread, with a turn of which both were told that it began, or without."""
    async with staged() as stage, further(stage.peer) as (second, server):
        stage.others = [second]
        await stage.peer.request("thread/start", {})
        server.answers["thread/resume"] = lambda _: {"thread": {"id": THREAD}}
        await second.request("thread/resume", {"threadId": THREAD})
        await stage.server.say(thread_started())
        if turn:
            for one in (stage.server, server):
                await one.say(started())
            for one in (stage.peer, second):
                await one.inbox.wait(lambda frame: frame.method == "turn/started")
        yield stage, server


def error(will_retry: bool) -> dict[str, Any]:
    params = {"threadId": THREAD, "turnId": TURN, "willRetry": will_retry, "error": {}}
    return {"method": "error", "params": params}


@pytest.mark.parametrize("twice", [False, True], ids=["held up once", "held up again"])
async def test_a_message_that_came_while_we_were_held_up_is_read_before_the_end(
    monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    async with staged_for_two(turn=False) as (stage, server), anyio.create_task_group() as group:
        recorder, held_up = stage.peer.recorder, anyio.Event()
        now = recorder.elapsed_seconds

        def late() -> float:
            """The clock after the barrier's answer: much later, and the second client was told."""
            asked = [one.get("method") for one in stage.server.received]
            if asked[-1:] != ["thread/read"] or recorder.trace.frames[-1].kind is not Kind.RESPONSE:
                return now()
            held_up.set()
            if twice:  # The machine takes the processor away in the second look too.
                pause = threading.Event().wait
                asyncio.get_running_loop().call_soon(pause, 2 * RECHECK_SECONDS)
            return now() + 10

        async def speak() -> None:
            await held_up.wait()
            await server.say({"method": "late", "params": {}})

        group.start_soon(speak)
        monkeypatch.setattr(recorder, "elapsed_seconds", late)
        ended = await stage.end(LONG)
        assert ended == TraceEnding(End.QUIESCENT)
        assert recorder.trace.frames[-1].method == "late"


async def test_nothing_owed_is_quiescent_after_a_short_silence() -> None:
    async with staged() as stage:
        await stage.turn()
        await stage.server.say(completed())
        ended, seconds = await stage.timed(LONG)
        assert ended == TraceEnding(End.QUIESCENT)
        assert QUIET_SECONDS <= seconds < LONG.settle
        assert stage.owed.open_obligations() == []


async def test_barrier_is_sent_and_any_answer_to_it_will_do() -> None:
    async with staged() as stage:
        stage.server.answers["thread/read"] = lambda _: {"code": -1, "message": "no such thread"}
        assert await stage.end() == TraceEnding(End.QUIESCENT)
        assert stage.server.asked("thread/read") == [{"threadId": THREAD}]


async def test_every_gate_is_opened() -> None:
    async with staged() as stage:
        passed = anyio.Event()

        async def stream() -> None:
            await stage.model.gates.pass_through("held")
            passed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream)
            await stage.model.gates.wait_until_reached("held")
            await stage.end()
            assert passed.is_set()


async def test_open_questions_are_refused_at_the_end() -> None:
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
        assert ended == TraceEnding(End.QUIESCENT)
        assert seconds >= BOUNDS.settle
        assert [str(one) for one in stage.owed.open_obligations()] == [
            f"turn/completed for turn {TURN}"
        ]


async def test_owed_end_that_comes_in_time_is_met() -> None:
    async with staged() as stage:
        await stage.turn()
        stage.server.then["thread/read"] = [completed()]
        ended, seconds = await stage.timed(LONG)
        assert ended == TraceEnding(End.QUIESCENT)
        assert seconds < LONG.settle
        assert stage.owed.open_obligations() == []


async def test_a_line_that_is_still_coming_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged() as stage:
        await stage.turn()
        looks = 2 * round(BOUNDS.settle / POLL_SECONDS)
        sizes = itertools.chain(range(1, looks), itertools.repeat(looks))
        # Of a line more has come at each look, for twice as long as the silence that is believed.
        monkeypatch.setattr(LineTransport, "partial_size", property(lambda _: next(sizes)))
        ended, seconds = await stage.timed(Bounds(step=0.3, scenario=20, settle=BOUNDS.settle))
        assert ended == TraceEnding(End.QUIESCENT)
        assert next(sizes) == looks
        assert seconds > 2 * BOUNDS.settle


async def test_unanswered_barrier_is_owed_too() -> None:
    async with staged() as stage:
        stage.server.answers["thread/read"] = lambda _: None
        ended, seconds = await stage.timed(BOUNDS)
        assert ended == TraceEnding(End.QUIESCENT)
        assert seconds >= BOUNDS.settle > BOUNDS.step
        assert [str(one) for one in stage.owed.open_obligations()] == [
            "answer for request thread/read id 1"
        ]


async def test_open_model_stream_at_the_bound_is_our_time_out() -> None:
    async with staged() as stage:
        await stage.turn()
        stage.model.open_streams = 1
        ended = await stage.end()
        assert ended.end is End.TIMED_OUT
        assert ended.outstanding_work == ("1 open model stream(s)",)
        assert ended.liveness == ""


async def test_open_model_stream_does_not_matter_when_nothing_is_owed() -> None:
    async with staged() as stage:
        stage.model.open_streams = 1
        assert await stage.end() == TraceEnding(End.QUIESCENT)


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
        assert await stage.end() == TraceEnding(End.QUIESCENT)


async def test_messages_without_end_are_liveness_at_the_bound() -> None:
    async with staged() as stage:
        await stage.turn()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_murmur, stage)
            expected = TraceEnding(End.TIMED_OUT, (), liveness="it keeps sending messages")
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
        assert await stage.end() == TraceEnding(End.EXITED)


async def test_server_that_leaves_instead_of_answering_the_barrier_has_exited() -> None:
    async with staged() as stage:
        await stage.turn()
        stage.server.leave_at = "thread/read"
        assert await stage.end() == TraceEnding(End.EXITED)


async def test_server_that_leaves_while_it_settles_has_exited() -> None:
    async with staged() as stage:
        await stage.turn()
        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await stage.peer.inbox.wait(lambda frame: frame.id == 3)  # the barrier's
                await stage.server.leave()

            tasks.start_soon(leave)
            assert await stage.end() == TraceEnding(End.EXITED)


async def test_flood_over_the_bound_of_a_trace_is_closed_by_us() -> None:
    async with staged(max_frames=50) as stage:
        await stage.turn()
        await stage.server.write(b'{"method":"x","params":{}}\n' * 60)
        await stage.peer.ended.wait()
        assert await stage.end() == TraceEnding(End.CLOSED)


async def test_trace_that_our_own_question_fills_is_closed_by_us() -> None:
    async with staged(max_frames=8) as stage:
        await stage.turn()
        for _ in range(2):
            await stage.server.say({"method": "x", "params": {}})
        await stage.peer.inbox.wait(lambda _: len(stage.peer.inbox.frames) == 6)
        assert await stage.end() == TraceEnding(End.CLOSED)


async def test_end_of_a_turn_that_one_client_is_not_told_is_waited_for_until_it_settles() -> None:
    async with staged_for_two() as (stage, _):
        await stage.server.say(completed())
        ended, seconds = await stage.timed(BOUNDS)
        assert ended == TraceEnding(End.QUIESCENT)
        assert seconds >= BOUNDS.settle
        assert [one.frame.connection for one in stage.owed.open_obligations()] == ["c2"]
        [settled] = stage.peer.recorder.trace.marks_of(Settled)
        assert settled.body.owed == (f"turn/completed for turn {TURN} on c2",)


async def test_end_of_a_turn_that_both_clients_are_told_needs_a_short_silence() -> None:
    async with staged_for_two() as (stage, second):
        for server in (stage.server, second):
            await server.say(completed())
        ended, seconds = await stage.timed(LONG)
        assert ended == TraceEnding(End.QUIESCENT)
        assert QUIET_SECONDS <= seconds < LONG.settle
        assert stage.owed.open_obligations() == []


async def test_open_questions_to_any_client_are_refused_at_the_end() -> None:
    async with staged_for_two(turn=False) as (stage, second):
        question = {"id": 9, "method": "item/fileChange/requestApproval", "params": {}}
        for server, peer in ((stage.server, stage.peer), (second, *stage.others)):
            await server.say(question)
            await peer.inbox.wait(lambda frame: frame.id == 9)
        await stage.end()
        for server in (stage.server, second):
            assert [one["id"] for one in server.received if "error" in one] == [9]


async def test_slow_reader_among_the_clients_reads_on() -> None:
    async with staged_for_two() as (stage, second):
        stage.others[0].set_reading(active=False)
        for server in (stage.server, second):
            await server.say(completed())
        assert await stage.end(LONG) == TraceEnding(End.QUIESCENT)
        assert stage.owed.open_obligations() == []


async def test_without_the_first_client_the_barrier_is_sent_on_another_connection() -> None:
    async with staged_for_two() as (stage, second):
        stage.main_is_open = False
        stage.peer.recorder.mark(Closed("c1"))
        await second.say(completed())
        assert await stage.end(LONG) == TraceEnding(End.QUIESCENT)
        assert stage.server.asked("thread/read") == []
        assert second.asked("thread/read") == [{"threadId": THREAD}]


async def test_connection_that_the_server_ended_goes_on_to_be_owed() -> None:
    async with staged_for_two() as (stage, second):
        await stage.server.say(completed())
        await second.leave()
        await stage.others[0].ended.wait()
        assert await stage.end() == TraceEnding(End.QUIESCENT)
        assert [one.frame.connection for one in stage.owed.open_obligations()] == ["c2"]


async def test_connection_that_the_server_ended_when_nothing_was_owed_is_no_matter() -> None:
    async with staged_for_two(turn=False) as (stage, second):
        await second.leave()
        await stage.others[0].ended.wait()
        ended, seconds = await stage.timed(LONG)
        assert ended == TraceEnding(End.QUIESCENT)
        assert seconds < LONG.settle


async def test_server_that_leaves_the_first_client_has_exited_whoever_else_is_there() -> None:
    async with staged_for_two() as (stage, _):
        await stage.server.leave()
        await stage.peer.ended.wait()
        assert await stage.end() == TraceEnding(End.EXITED)


async def test_when_all_are_gone_and_we_ended_the_first_one_the_trace_is_closed() -> None:
    async with staged_for_two() as (stage, second):
        stage.main_is_open = False
        stage.peer.recorder.mark(Closed("c1"))
        await second.leave()
        await stage.others[0].ended.wait()
        assert await stage.end() == TraceEnding(End.CLOSED)
