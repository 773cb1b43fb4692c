"""Whole turns with fake agents: results of `run`, and events of streams."""

import pytest
from fake_agents import ECHO

from agent_sdk import (
    Agent,
    AgentMessageItem,
    ItemCompletedEvent,
    ThreadStartedEvent,
    TurnCompletedEvent,
    TurnStartedEvent,
    Usage,
)

pytestmark = [pytest.mark.socket, pytest.mark.anyio]


async def test_a_turn_gives_the_message_the_items_and_the_usage(fake) -> None:
    thread = Agent(agent_path=fake(ECHO).path).start_thread()
    assert thread.id is None
    result = await thread.run("hello")
    assert thread.id == "thr_1"
    assert result.final_response == "hello"
    assert result.items == (AgentMessageItem(id="item_0", text="hello"),)
    assert result.usage == Usage(input_tokens=1, cached_input_tokens=2, output_tokens=3)


async def test_a_stream_gives_the_events_in_their_order(fake) -> None:
    thread = Agent(agent_path=fake(ECHO).path).start_thread()
    events = [event async for event in thread.run_streamed("hello")]
    assert events == [
        ThreadStartedEvent(thread_id="thr_1"),
        TurnStartedEvent(),
        ItemCompletedEvent(item=AgentMessageItem(id="item_0", text="hello")),
        TurnCompletedEvent(usage=Usage(input_tokens=1, cached_input_tokens=2, output_tokens=3)),
    ]


async def test_the_second_turn_resumes_the_thread(fake) -> None:
    agent = fake(ECHO)
    thread = Agent(agent_path=agent.path).start_thread(model="m")
    await thread.run("one")
    await thread.run("two")
    first, second = agent.runs()
    assert first["argv"] == ["exec", "--experimental-json", "--model", "m"]
    assert second["argv"] == [*first["argv"], "resume", "thr_1"]
    assert (first["prompt"], second["prompt"], thread.id) == ("one", "two", "thr_1")
