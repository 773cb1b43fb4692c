"""Calls of MCP tools: the offer, the item, and the output for the model."""

import json
from dataclasses import replace
from typing import Any

import pytest
from mcp_side import odd, tiny, until_in, with_servers
from model_side import calls, says
from session_peer import session

from reference_server.config.mcp import McpServer

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("mcp_sdk")]


async def test_a_tool_is_offered_and_called(tmp_path) -> None:
    replies = [calls("mcp__tiny__add", a=2, b=3), says("five")]
    async with session(tmp_path, replies, settings=with_servers(tiny())) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.turn_end(turn)
    [offered] = [t for t in peer.side.bodies[0]["tools"] if t.get("name") == "mcp__tiny__add"]
    assert offered == {
        "type": "function",
        "name": "mcp__tiny__add",
        "description": "Adds a and b",
        "strict": False,
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        },
    }
    started = next(p for p in peer.params_of("item/started") if p["item"]["type"] == "mcpToolCall")
    begun = started["item"]
    assert begun == {
        "type": "mcpToolCall",
        "id": begun["id"],
        "server": "tiny",
        "tool": "add",
        "status": "inProgress",
        "arguments": {"a": 2, "b": 3},
    }
    [item] = peer.completed_items("mcpToolCall")
    result = {"content": [{"type": "text", "text": "the sum is 5"}], "structuredContent": None}
    assert item == {
        **begun,
        "status": "completed",
        "result": result,
        "durationMs": item["durationMs"],
    }
    assert peer.told_model() == "the sum is 5"


async def test_a_tool_that_fails_has_its_words_in_the_item_and_for_the_model(tmp_path) -> None:
    replies = [calls("mcp__tiny__fail"), says("it failed")]
    async with session(tmp_path, replies, settings=with_servers(tiny())) as peer:
        turn = await peer.run_turn(await peer.start_thread())
    assert turn["status"] == "completed"
    [item] = peer.completed_items("mcpToolCall")
    assert item["status"] == "failed"
    assert item["error"] == {"message": "it always fails"}
    assert "result" not in item
    assert peer.told_model() == "failed: it always fails"


async def test_items_are_stored_and_the_conversation_goes_on_with_calls_and_outputs(
    tmp_path,
) -> None:
    settings = with_servers(tiny())
    add = calls("mcp__tiny__add", a=2, b=3)
    replies = [add, calls("mcp__tiny__fail", "call_2"), says("five")]
    async with session(tmp_path, replies, settings=settings) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        items = peer.completed_items("mcpToolCall")
    async with session(tmp_path, [says("again")], settings=settings) as peer:
        resumed = await peer.request("thread/resume", {"threadId": thread})
        assert mcp_items(resumed) == items
        read = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
        assert mcp_items(read) == items
        forked = await peer.request("thread/fork", {"threadId": thread})
        assert [item["status"] for item in mcp_items(forked)] == ["completed", "failed"]
        await peer.run_turn(thread)
    said = peer.side.bodies[-1]["input"]
    assert [(i["name"], i["call_id"]) for i in said if i["type"] == "function_call"] == [
        ("mcp__tiny__add", "call_1"),
        ("mcp__tiny__fail", "call_2"),
    ]
    assert [i["output"] for i in said if i["type"] == "function_call_output"] == [
        "the sum is 5",
        "failed: it always fails",
    ]


def mcp_items(answer: dict[str, Any]) -> list[dict[str, Any]]:
    turns = answer["result"]["thread"]["turns"]
    return [item for turn in turns for item in turn["items"] if item["type"] == "mcpToolCall"]


async def test_a_review_has_the_tools_too(tmp_path) -> None:
    verdict = says(json.dumps({"findings": [], "overall_explanation": "fine"}))
    replies = [calls("mcp__tiny__add", a=1, b=1), verdict]
    async with session(tmp_path, replies, settings=with_servers(tiny())) as peer:
        thread = await peer.start_thread()
        target = {"type": "uncommittedChanges"}
        answer = await peer.request("review/start", {"threadId": thread, "target": target})
        await peer.turn_end(answer["result"]["turn"]["id"])
    [item] = peer.completed_items("mcpToolCall")
    assert item["status"] == "completed"


async def test_who_comes_into_the_turn_is_shown_the_call_that_runs(tmp_path) -> None:
    log = tmp_path / "log"
    settings = with_servers(odd("--log", str(log)))
    async with session(tmp_path, [calls("mcp__odd__silent")], settings=settings) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await until_in(log, "tools/call")
        shown = await peer.request("thread/resume", {"threadId": thread})
        [item] = mcp_items(shown)
        assert (item["status"], item["tool"]) == ("inProgress", "silent")
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        await peer.turn_end(turn)


async def test_servers_are_shared_by_the_threads_of_a_server(tmp_path) -> None:
    replies = [calls("mcp__odd__process"), says("1"), calls("mcp__odd__process"), says("2")]
    async with session(tmp_path, replies, settings=with_servers(odd())) as peer:
        for _ in range(2):
            await peer.run_turn(await peer.start_thread())
        first, second = (text_of(item) for item in peer.completed_items("mcpToolCall"))
    assert first == second


async def test_a_program_runs_in_the_folder_of_its_configuration(tmp_path) -> None:
    settings = with_servers(odd(cwd=str(tmp_path)), odd_named("none", cwd=str(tmp_path / "none")))
    async with session(tmp_path, [calls("mcp__odd__folder"), says("1")], settings=settings) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.told_model() == str(tmp_path)
    [told] = peer.params_of("error")
    assert "the working directory" in told["error"]["message"]


def odd_named(name: str, **more: Any) -> McpServer:
    return replace(odd(**more), name=name)


def text_of(item: dict[str, Any]) -> str:
    return item["result"]["content"][0]["text"]
