"""The synchronous interface: the same results and errors, without the caller's event loop."""

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import assert_type

import pytest
from fake_agents import ECHO, WAITS, Fake
from pydantic import RootModel

from agent_sdk import (
    AbortError,
    AbortSignal,
    Agent,
    AgentError,
    AgentNotFoundError,
    ProcessError,
    RunResult,
    Thread,
    TurnFailedError,
)

pytestmark = pytest.mark.socket


class Numbers(RootModel[list[int]]):
    """A list."""


def _thread(agent: Fake) -> Thread:
    return Agent(agent_path=agent.path).start_thread()


def _until(fact: Callable[[], object]) -> None:
    pause = threading.Event()
    for _ in range(2000):
        if fact():
            return
        pause.wait(0.01)
    raise AssertionError("it never came true")


def test_a_turn_gives_the_same_result(fake) -> None:
    thread = _thread(fake(ECHO))
    result = thread.run_sync("hello")
    assert result == asyncio.run(thread.run("hello"))
    assert result.final_response == "hello"
    assert thread.id == "thr_1"


def test_a_stream_gives_the_same_events(fake) -> None:
    thread = _thread(fake(ECHO))
    stream = thread.run_streamed_sync("hello")
    events = list(stream)

    async def others() -> list[object]:
        return [event async for event in thread.run_streamed("hello")]

    assert events == asyncio.run(others())
    assert list(stream) == []
    assert (stream.exit_code, stream.stderr) == (0, "")


def test_a_schema_gives_an_instance(fake) -> None:
    result = _thread(fake("read(); begin(); message('[1]'); complete()")).run_sync(
        "x", output_schema=Numbers
    )
    assert_type(result, RunResult[Numbers])
    assert result.parse() == Numbers([1])


def test_it_works_where_a_loop_runs_already(fake) -> None:
    thread = _thread(fake(ECHO))

    async def notebook() -> str:
        assert len(list(thread.run_streamed_sync("x"))) == 4
        return thread.run_sync("hello").final_response

    assert asyncio.run(notebook()) == "hello"


def test_it_works_in_several_threads_at_once(fake) -> None:
    agent, said = fake(ECHO), []
    workers = [
        threading.Thread(target=lambda n=n: said.append(_thread(agent).run_sync(n).final_response))
        for n in "abcdef"
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(said) == list("abcdef")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('read(); begin(); say("turn.failed", error={"message": "no"})', TurnFailedError),
        ("sys.exit(3)", ProcessError),
    ],
)
def test_run_raises_the_same_errors(fake, body: str, error: type[AgentError]) -> None:
    with pytest.raises(error):
        _thread(fake(body)).run_sync("x")


def test_an_agent_that_is_not_there_is_named(tmp_path) -> None:
    thread = Agent(agent_path=tmp_path / "none").start_thread()
    with pytest.raises(AgentNotFoundError):
        thread.run_sync("x")
    with pytest.raises(AgentNotFoundError):
        next(thread.run_streamed_sync("x"))


def test_a_stream_raises_what_its_agent_dies_of(fake) -> None:
    stream = _thread(fake("read(); begin(); sys.exit(3)")).run_streamed_sync("x")
    with pytest.raises(ProcessError, match="status 3"):
        list(stream)
    assert list(stream) == []


def test_a_signal_aborts_from_another_thread(fake, hurried) -> None:
    agent, stop = fake(WAITS), AbortSignal()
    thread = _thread(agent)
    helper = threading.Thread(target=lambda: (_until(lambda: thread.id), stop.abort("enough")))
    helper.start()
    with pytest.raises(AbortError, match="enough"):
        thread.run_sync("x", signal=stop)
    helper.join()
    assert agent.living() == []


def test_the_end_of_the_block_ends_the_agent(fake, hurried) -> None:
    agent = fake(WAITS)
    with _thread(agent).run_streamed_sync("x", output_schema={}) as events:
        assert next(events).type == "thread.started"
        assert agent.living() != []
    assert agent.living() == []
    assert list(events) == []


def test_breaking_out_ends_the_agent_and_the_thread(fake, hurried, temporary) -> None:
    agent, before = fake(WAITS), threading.active_count()
    for _ in _thread(agent).run_streamed_sync("x", output_schema={}):
        break
    gc.collect()
    _until(lambda: agent.living() == [] and not list(temporary.iterdir()))
    _until(lambda: threading.active_count() <= before)


def test_a_stream_that_was_never_begun_starts_nothing(fake) -> None:
    agent = fake(ECHO)
    stream = _thread(agent).run_streamed_sync("x")
    stream.close()
    assert list(stream) == []
    assert agent.runs() == []


def test_turns_end_their_threads(fake) -> None:
    before = threading.active_count()
    thread = _thread(fake(ECHO))
    for number in range(3):
        thread.run_sync(str(number))
        list(thread.run_streamed_sync(str(number)))
    _until(lambda: threading.active_count() <= before)
