"""Leaving a turn early, in every possible way, leaves no process of the agent or its commands."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fake_agents import BOUND, DEAF, ECHO, WAITS, WITH_COMMANDS, Fake, until

from agent_sdk import (
    AbortError,
    AbortSignal,
    Agent,
    AgentError,
    ProcessError,
    Thread,
    TurnCompletedEvent,
    tree,
)
from agent_sdk import process as processes

pytestmark = [pytest.mark.socket, pytest.mark.anyio, pytest.mark.slow]

TIDY = (
    """
def tidy(*_):
    # Not by way of `out`, which it may have interrupted.
    rest = b"y" * 500_000
    while rest:
        rest = rest[os.write(1, rest):]
    open(os.path.join(HERE, "tidied"), "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, tidy)
"""
    + WAITS
)


def _thread(agent: Fake) -> Thread:
    return Agent(agent_path=agent.path).start_thread()


@asynccontextmanager
async def _turn(thread: Thread, **options) -> AsyncGenerator["asyncio.Task[object]"]:
    """A turn under way, as a task."""
    task = asyncio.ensure_future(thread.run("x", **options))
    await until(lambda: thread.id)
    yield task


@pytest.mark.parametrize("body", [WITH_COMMANDS, DEAF], ids=["obeys", "deaf"])
async def test_cancelling_the_task_ends_the_agent_and_its_commands(
    fake, hurried, body: str
) -> None:
    agent = fake(body)
    async with _turn(_thread(agent), output_schema={"type": "object"}) as task:
        await until(lambda: len(agent.living()) == 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert agent.living() == []


@pytest.mark.parametrize("body", [WITH_COMMANDS, DEAF], ids=["obeys", "deaf"])
async def test_aborting_raises_abort_error_and_ends_the_agent_and_its_commands(
    fake, hurried, body: str
) -> None:
    agent, stop = fake(body), AbortSignal()
    async with _turn(_thread(agent), signal=stop) as task:
        stop.abort("the user left")
        with pytest.raises(AbortError, match="aborted: the user left") as told:
            await task
        assert (told.value.name, told.value.reason) == ("AbortError", "the user left")
        assert agent.living() == []


async def test_a_time_limit_ends_the_agent(fake, hurried) -> None:
    agent = fake(WITH_COMMANDS)
    thread = _thread(agent)
    with pytest.raises(TimeoutError):  # noqa: PT012
        async with asyncio.timeout(None) as limit, _turn(thread) as task:
            limit.reschedule(asyncio.get_running_loop().time())
            await task
    assert agent.living() == []


async def test_a_signal_may_abort_by_itself_after_a_time(fake, hurried) -> None:
    agent = fake(WAITS)
    with pytest.raises(AbortError) as told:
        await _thread(agent).run("x", signal=AbortSignal.timeout(0.1))
    assert isinstance(told.value.reason, TimeoutError)


async def test_aborting_beforehand_starts_nothing(fake) -> None:
    agent, stop = fake(ECHO), AbortSignal()
    stop.abort()
    stop.abort("twice")
    with pytest.raises(AbortError, match=r"^the turn was aborted$"):
        await _thread(agent).run("x", signal=stop)
    with pytest.raises(AbortError):
        await anext(_thread(agent).run_streamed("x", signal=stop))
    assert agent.runs() == []


async def test_aborting_afterwards_does_nothing(fake) -> None:
    agent, stop = fake(ECHO), AbortSignal()
    thread = _thread(agent)
    await thread.run("x", signal=stop)
    stop.abort()
    assert stop.aborted
    assert (await thread.run("y")).final_response == "y"


async def test_one_signal_aborts_several_turns_from_another_thread(fake, hurried) -> None:
    agent, stop = fake(WAITS), AbortSignal()
    threads = [_thread(agent) for _ in range(3)]
    turns = [asyncio.ensure_future(thread.run("x", signal=stop)) for thread in threads]
    await until(lambda: all(thread.id for thread in threads))
    await asyncio.to_thread(stop.abort, "all")
    errors = await asyncio.gather(*turns, return_exceptions=True)
    assert [type(error) for error in errors] == [AbortError] * 3
    assert len({id(error) for error in errors}) == 3
    assert agent.living() == []


async def test_the_iterator_raises_abort_error(fake, hurried) -> None:
    agent, stop = fake(WAITS), AbortSignal()
    stream = _thread(agent).run_streamed("x", signal=stop)
    assert (await anext(stream)).type == "thread.started"
    assert (await anext(stream)).type == "turn.started"
    stop.abort()
    with pytest.raises(AbortError):
        await anext(stream)
    assert agent.living() == []
    assert [event async for event in stream] == []


async def test_processes_started_while_a_command_is_ended_are_ended_too(fake, hurried) -> None:
    """Nobody sees it start, and its parent is gone when somebody looks."""
    agent = fake(
        """
read()
child = '''
import signal, subprocess, sys
def start(*_):
    subprocess.Popen([sys.executable, "-IS", "-c", "import signal; signal.pause()"])
    sys.exit()
signal.signal(signal.SIGTERM, start)
print(flush=True)
signal.pause()
'''
command = [sys.executable, "-IS", "-c", child]
subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE).stdout.readline()
begin()
forever()
"""
    )
    async with _turn(_thread(agent)) as task:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert agent.living() == []


async def test_closing_a_stream_ends_the_agent_and_its_commands(fake, hurried) -> None:
    agent = fake(WITH_COMMANDS)
    stream = _thread(agent).run_streamed("x", output_schema={"type": "object"})
    await anext(stream)
    await stream.aclose()
    assert agent.living() == []
    await stream.aclose()
    assert [event async for event in stream] == []


async def test_a_stream_that_was_never_begun_can_be_closed(fake) -> None:
    agent = fake(ECHO)
    stream = _thread(agent).run_streamed("x", output_schema={"type": "object"})
    await stream.aclose()
    assert [event async for event in stream] == []
    assert agent.runs() == []


async def test_an_error_in_the_block_of_a_stream_ends_the_agent(fake, hurried) -> None:
    agent = fake(WITH_COMMANDS)
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with _thread(agent).run_streamed("x") as events:
            async for _ in events:
                _ = 1 / 0
    assert agent.living() == []


async def test_cancelling_a_step_of_a_stream_ends_the_agent(fake, hurried) -> None:
    agent = fake(WAITS)
    stream = _thread(agent).run_streamed("x")
    await anext(stream)
    await anext(stream)
    step = asyncio.ensure_future(stream.next_event())
    await asyncio.to_thread(threading.Event().wait, 0.05)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert agent.living() == []


async def test_breaking_out_of_a_stream_ends_the_agent_without_a_word(
    fake, hurried, temporary: Path
) -> None:
    agent = fake(WITH_COMMANDS)
    async for _ in _thread(agent).run_streamed("x", output_schema={"type": "object"}):
        break
    await until(lambda: agent.living() == [] and not list(temporary.iterdir()))


async def test_a_stream_that_is_garbage_ends_its_agent(fake, hurried, temporary: Path) -> None:
    agent = fake(DEAF)
    stream = _thread(agent).run_streamed("x", output_schema={"type": "object"})
    await anext(stream)
    circle = [stream]
    circle.append(circle)  # type: ignore[arg-type]
    del stream, circle
    gc.collect()
    await until(lambda: agent.living() == [] and not list(temporary.iterdir()))


async def test_a_signal_forgets_the_turns_that_are_over(fake, hurried) -> None:
    stop = AbortSignal()
    await _thread(fake(ECHO)).run("x", signal=stop)
    waits = fake(WAITS)
    stream = _thread(waits).run_streamed("x", signal=stop)
    await anext(stream)
    assert len(stop._waiting) == 1
    del stream
    gc.collect()
    assert stop._waiting == {}
    await until(lambda: waits.living() == [])


@pytest.mark.parametrize("leave", ["aclose", "drop"])
async def test_an_agent_that_is_told_to_end_may_tidy_up_and_write(
    fake, monkeypatch: pytest.MonkeyPatch, leave: str
) -> None:
    monkeypatch.setattr(tree, "GRACE_SECONDS", BOUND)
    agent = fake(TIDY)
    stream = _thread(agent).run_streamed("x")
    await anext(stream)
    await anext(stream)
    begun = time.monotonic()
    if leave == "aclose":
        await stream.aclose()
    del stream
    # It wrote more than a pipe holds before this, and did not have to be killed.
    await until((agent.path.parent / "tidied").exists)
    await until(lambda: agent.living() == [])
    assert time.monotonic() - begun < BOUND


async def test_a_closing_that_is_cancelled_goes_on(fake, hurried) -> None:
    agent = fake(DEAF)
    stream = _thread(agent).run_streamed("x")
    await anext(stream)
    closing = asyncio.ensure_future(stream.aclose())
    await asyncio.to_thread(threading.Event().wait, 0.05)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await until(lambda: agent.living() == [])


async def test_an_agent_that_lingers_after_its_turn_is_ended(fake, hurried) -> None:
    agent = fake("begin(); message(read()); complete(); forever()")
    assert (await _thread(agent).run("x")).final_response == "x"
    assert agent.living() == []
    stream = _thread(agent).run_streamed("x")
    assert [event.type async for event in stream][-1] == "turn.completed"
    assert agent.living() == []


SAVES = """
begin()
message(read())
complete()
signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended too early"))
select = __import__("select")
select.select([], [], [], 0.2)
open(os.path.join(HERE, f"saved-{os.getpid()}"), "w").close()
"""


async def test_who_leaves_at_the_end_of_the_turn_lets_the_agent_save(fake) -> None:
    agent = fake(SAVES)
    thread = _thread(agent)
    async for event in thread.run_streamed("one"):
        if isinstance(event, TurnCompletedEvent):
            break
    # The next turn begins when the one before has saved what it goes on with.
    await thread.run("two")
    assert len(list(agent.path.parent.glob("saved-*"))) == 2


async def test_closing_at_the_end_of_the_turn_lets_the_agent_save(fake) -> None:
    agent = fake(SAVES)
    async with _thread(agent).run_streamed("one") as events:
        async for event in events:
            if isinstance(event, TurnCompletedEvent):
                break
    assert len(list(agent.path.parent.glob("saved-*"))) == 1


async def test_processes_left_by_an_agent_hold_up_nobody(fake) -> None:
    """A server that the agent was asked to start has its pipes, and stays."""
    agent = fake(
        """
prompt = read()
begin()
child = [sys.executable, "-IS", "-c", "import signal; signal.pause()"]
message(str(subprocess.Popen(child).pid))
complete()
"""
    )
    result = await _thread(agent).run("x")
    left = int(result.final_response)
    assert agent.living() == [left]
    os.kill(left, signal.SIGKILL)
    await until(lambda: agent.living() == [])


async def test_an_agent_that_closes_its_output_and_stays_is_ended(fake, hurried) -> None:
    agent = fake("read(); begin(); os.close(1); forever()")
    with pytest.raises(ProcessError, match="closed its output before its turn had ended"):
        await _thread(agent).run("x")
    assert agent.living() == []


async def test_two_turns_of_a_thread_do_not_run_at_once(fake, hurried) -> None:
    agent = fake(WAITS)
    thread = _thread(agent)
    async with _turn(thread) as task:
        with pytest.raises(AgentError, match="a turn of this thread still runs"):
            await thread.run("y")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(agent.runs()) == 1


async def test_threads_run_side_by_side(fake) -> None:
    agent = fake(ECHO)
    client = Agent(agent_path=agent.path)
    results = await asyncio.gather(
        *(client.start_thread().run(str(number)) for number in range(12))
    )
    assert [result.final_response for result in results] == [str(n) for n in range(12)]


async def test_a_slow_reader_slows_the_agent_and_loses_nothing(fake) -> None:
    agent = fake(
        """
read()
begin()
for number in range(300):
    message(f"{number} " + "z" * 10_000)
    open(os.path.join(HERE, "count"), "w").write(str(number))
complete()
"""
    )
    stream = _thread(agent).run_streamed("x")
    await anext(stream)
    await until((agent.path.parent / "count").exists)
    await asyncio.to_thread(threading.Event().wait, 0.2)
    assert int((agent.path.parent / "count").read_text() or 0) < 299
    assert len([event async for event in stream]) == 302


async def test_a_flood_of_events_does_not_stop_other_tasks(fake, hurried) -> None:
    agent = fake('read(); begin()\nwhile True: message("z" * 1000)')
    turn = asyncio.ensure_future(_thread(agent).run("x"))
    await until(agent.runs)
    async with asyncio.timeout(BOUND):
        for _ in range(20):
            await asyncio.to_thread(str)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert agent.living() == []


def test_no_descriptor_is_left_open(fake, hurried) -> None:
    async def turns() -> int:
        thread = _thread(fake(ECHO))
        await thread.run("warm")
        before = len(os.listdir("/proc/self/fd"))
        await thread.run("x")
        async with thread.run_streamed("x") as events:
            await anext(events)
        with pytest.raises(AbortError):
            await _thread(fake(WAITS)).run("x", signal=AbortSignal.timeout(0.1))
        return len(os.listdir("/proc/self/fd")) - before

    assert asyncio.run(turns()) == 0


def test_processes_are_found_without_proc() -> None:
    """A system without /proc has `ps` alone."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        table = tree._of_ps()
        assert table[child.pid].parent == os.getpid()
        assert table[child.pid].session == os.getpgid(0)
        assert not table[child.pid].zombie
        assert table[child.pid].parent == tree.processes()[child.pid].parent
    finally:
        child.communicate(timeout=BOUND)


def test_the_bounds_are_those_of_the_documents() -> None:
    assert (tree.GRACE_SECONDS, processes.LINGER_SECONDS) == (5.0, 5.0)
