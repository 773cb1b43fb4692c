"""Observations of the scripted model about its caller, over both ways to reach it."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx
import pytest

from harness.model.encoder import CallContents
from harness.model.wire.responses import ResponsesEncoder

from .test_models import Json, ask, ask_into, body, done_items, said, side, until

__all__ = ["side"]

pytestmark = [pytest.mark.socket]

TOOLS = [{"type": "function", "name": "exec_command", "parameters": {}}]
TWO_STEPS = "[{reply: [{run: ls}]}, {reply: [{message: done}]}]"


async def call(one: Any, *entries: Json, tools: list[Json] | None = None) -> list[Json]:
    """Make one call with these further input entries; give the items of its answer."""
    given = body("hi", tools=tools or [])
    given["input"] += entries
    events: list[Json] = []
    response = await one.caller.post("responses", json=given)
    for line in response.text.splitlines():
        if line.startswith("data: "):
            events.append(json.loads(line[6:]))  # noqa: PERF401 - reads as the stream does
    return done_items(events)


async def test_a_reply_whose_tool_call_got_its_output_is_whole(side: Any) -> None:
    async with side(TWO_STEPS) as one:
        (asked,) = await call(one, tools=TOOLS)
        output = {"type": "function_call_output", "call_id": asked["call_id"], "output": "x"}
        await call(one, asked, output)
    assert [problem for made in one.model.calls for problem in made.problems] == []


async def test_a_tool_call_that_was_forgotten_is_noted(side: Any) -> None:
    async with side(TWO_STEPS) as one:
        (asked,) = await call(one, tools=TOOLS)
        await call(one)
    assert one.model.calls[1].problems == [
        f"call 2: its input does not hold the output of the tool call {asked['call_id']}"
    ]


async def test_a_tool_call_without_an_output_is_what_the_api_refuses(side: Any) -> None:
    async with side(TWO_STEPS) as one:
        (asked,) = await call(one, tools=TOOLS)
        await call(one, asked)
    assert f"a function_call '{asked['call_id']}' without its output" in one.model.calls[1].problems


async def test_content_of_a_new_turn_is_left_open(side: Any) -> None:
    """An interrupted turn may be dropped from the history: nothing says that it may not."""
    async with side(TWO_STEPS) as one:
        await call(one, tools=TOOLS)
        await ask(one, "hi", "something else")
    assert one.model.calls[1].problems == []


async def test_content_of_another_conversation_is_left_open(side: Any) -> None:
    """A reviewer has one of its own: as many texts of the user, and others."""
    async with side(TWO_STEPS) as one:
        await call(one, tools=TOOLS)
        await ask(one, "something else")
    assert one.model.calls[1].problems == []


async def test_a_stream_is_cut_before_between_and_after_the_deltas(side: Any) -> None:
    cuts = [
        ("[{disconnect: true}, a, b]", []),
        ("[a, {disconnect: true}, b]", ["a"]),
        ("[a, b, {disconnect: true}]", ["a", "b"]),
    ]
    for deltas, heard in cuts:
        events: list[Json] = []
        async with side(f"[{{reply: [{{message: {{deltas: {deltas}}}}}]}}]") as one:
            with pytest.raises(httpx.RemoteProtocolError):
                await ask_into(events, one, "hi")
            await until(lambda one=one: one.model.calls[0].outcome_text == "disconnected")
        assert [event["delta"] for event in events if "delta" in event] == heard


async def test_a_cut_is_repeated_as_often_as_it_says_and_until_the_turn_ends(side: Any) -> None:
    text = """
    [{reply: [{disconnect: {times: 2}}]},
     {reply: [{disconnect: {times: until-turn-ends}}]},
     {reply: [{message: whole}]}]
    """
    async with side(text) as one:
        for _ in range(4):
            with pytest.raises(httpx.RemoteProtocolError):
                await ask_into([], one, "hi")
        assert said(await ask(one, "hi", "again")) == "whole"
    assert [made.index for made in one.model.calls] == [0, 0, 1, 1, 2]


async def test_an_idle_stream_is_idle_until_its_gate_opens(side: Any) -> None:
    events: list[Json] = []
    async with side("[{reply: [{hold: idle}, {message: x}]}]") as one:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_into, events, one, "hi")
            await one.model.gates.wait_until_reached("idle")
            await until(lambda: bool(events))
            assert [event["type"] for event in events] == ["response.created"]
            assert one.model.open_streams == 1
            one.model.gates.open("idle")
        assert said(events) == "x"
    assert one.model.open_streams == 0


async def test_the_encoder_reads_the_contents_of_a_call() -> None:
    asked = ResponsesEncoder().call_contents(
        {
            "model": "m",
            "input": [{"role": "user", "content": "x" * 300}],
            "reasoning": {"effort": "low", "summary": "auto"},
            "text": {"format": {"type": "json_schema"}},
        }
    )
    assert asked == CallContents(
        model="m", user_texts=("x" * 200,), effort="low", summary="auto", schema=True, images=()
    )
    nothing = CallContents(model="", user_texts=(), effort="", summary="", schema=False, images=())
    assert ResponsesEncoder().call_contents({}) == nothing
