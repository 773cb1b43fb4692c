"""The end of a conversation waits for messages that rules expect, and not for ever."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import anyio

from harness.client.target.profile import Bounds, Deviation, Profile
from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Verdict
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.play.late_messages import MAX_WAITS_IN_VAIN, LateMessages
from harness.protocol.spec.loading import load_book
from harness.scenario.ending import TraceFinisher
from harness.trace.trace import End, Header, Trace
from tests.unit.scenario.fake_server import THREAD, FakeServer, connected, thread_started

RULES = [all_rules()["archive.told"]]
ARCHIVED = {"method": "thread/archived", "params": {"threadId": THREAD}}
BOUNDS = Bounds(step=2, scenario=5, settle=0.5)


class Watched(LateMessages):
    """Late messages that tell when the end of a conversation asked for them first."""

    asked: anyio.Event

    def missed_by(self, trace: Trace) -> list[str]:
        self.asked.set()
        return super().missed_by(trace)


async def say_late(late: Watched, server: FakeServer) -> None:
    """Send thread/archived after the short silence."""
    await late.asked.wait()
    await server.say(ARCHIVED)


async def beat(late: Watched, server: FakeServer) -> None:
    """Send a notification of the server's own whenever the end asks what is missing."""
    while True:
        await late.asked.wait()
        late.asked = anyio.Event()
        await server.say({"method": "server/heartbeat", "params": {}})


async def play(
    late: Watched,
    *,
    archives: bool = True,
    is_told: bool = False,
    beats: bool = False,
) -> tuple[Trace, float]:
    """Start a thread and perhaps archive it; return the trace, and the seconds of its end."""
    model, late.asked = ScriptedModel([], ResponsesEncoder()), anyio.Event()
    trace, took = Trace(), 0.0
    with anyio.fail_after(20):
        async with connected() as (peer, server, owed), anyio.create_task_group() as tasks:
            server.answers["thread/archive"] = lambda _: {}
            server.then = {"thread/start": [thread_started()]}
            await peer.request("thread/start", {"cwd": "/"})
            if archives:
                await peer.request("thread/archive", {"threadId": THREAD})
            if is_told:
                tasks.start_soon(partial(say_late, late, server))
            if beats:
                tasks.start_soon(partial(beat, late, server))
            began = peer.recorder.elapsed_seconds()
            ended = await TraceFinisher(
                [peer],
                model,
                owed,
                bounds=BOUNDS,
                barrier=("thread/read", {"threadId": THREAD}),
                children=set,
                initial_children=set(),
                expected=late,
            ).run()
            trace, took = peer.recorder.trace, peer.recorder.elapsed_seconds() - began
            trace.end = ended.end
            tasks.cancel_scope.cancel()
    return trace, took


def late_messages(*deviations: Deviation) -> Watched:
    return Watched(load_book(), Profile(name="p", deviations=list(deviations)), RULES)


def verdicts(trace: Trace) -> list[Verdict]:
    return [row.verdict for row in judge(load_book(), trace, RULES)]


async def test_message_that_comes_within_the_long_silence_counts() -> None:
    late = late_messages()
    for _ in range(MAX_WAITS_IN_VAIN + 1):
        trace, _ = await play(late, is_told=True)
        assert trace.frames[-1].method == "thread/archived"
        assert verdicts(trace) == [Verdict.PASS]


async def test_message_that_never_comes_is_waited_for_twice() -> None:
    late, seconds = late_messages(), list[float]()
    for _ in range(MAX_WAITS_IN_VAIN + 1):
        trace, took = await play(late)
        assert verdicts(trace) == [Verdict.FAIL]
        seconds.append(took)
    assert min(seconds[:-1]) >= BOUNDS.settle
    assert seconds[-1] < BOUNDS.settle


async def test_other_messages_do_not_prolong_the_wait() -> None:
    trace, took = await play(late_messages(), beats=True)
    assert trace.end is End.QUIESCENT
    assert BOUNDS.settle <= took < BOUNDS.scenario
    assert verdicts(trace) == [Verdict.FAIL]


async def test_known_deviation_is_not_waited_for() -> None:
    known = Deviation(rule="archive.told", scenario="*", reason="known")
    _, took = await play(late_messages(known))
    assert took < BOUNDS.settle


async def test_trace_that_lacks_nothing_ends_after_the_short_silence() -> None:
    _, took = await play(late_messages(), archives=False)
    assert took < BOUNDS.settle


async def test_rows_of_the_end_are_reused_only_for_the_same_trace() -> None:
    late = late_messages()
    trace, _ = await play(late, is_told=True)
    assert [row.verdict for row in late.rows_of(trace) or ()] == [Verdict.PASS]
    assert late.rows_of(trace) == judge(load_book(), trace, RULES)
    assert late.rows_of(replace(trace, end=End.CLOSED)) is None
    assert late.rows_of(replace(trace, frames=trace.frames[:-1])) is None
    assert late.rows_of(replace(trace, header=Header(scenario="other"))) is None
