"""Calls of the tools of an MCP server: what is offered, the item, what the model is told."""

import pytest
from mcp_side import TINY, program, with_servers
from model_side import calls, says
from session_peer import session

pytestmark = [pytest.mark.slow, pytest.mark.socket]


async def test_a_tool_is_offered_and_called(tmp_path) -> None:
    replies = [calls("mcp__tiny__add", a=2, b=3), says("five")]
    async with session(tmp_path, replies, settings=with_servers(program(TINY))) as peer:
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
    async with session(tmp_path, replies, settings=with_servers(program(TINY))) as peer:
        turn = await peer.run_turn(await peer.start_thread())
    assert turn["status"] == "completed"
    [item] = peer.completed_items("mcpToolCall")
    assert item["status"] == "failed"
    assert item["error"] == {"message": "it always fails"}
    assert "result" not in item
    assert peer.told_model() == "failed: it always fails"
