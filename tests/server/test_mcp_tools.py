"""MCP tools that are offered to the model, and their names."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_side import odd, offered, tiny, with_servers
from model_side import calls, says
from session_peer import session

from reference_server.config.mcp import McpServer
from reference_server.mcp.servers import MAX_NAME_CHARACTERS, model_names
from reference_server.mcp.tools import (
    DESCRIPTION_LIMIT,
    MAX_TOOLS,
    SCHEMA_LIMIT,
    McpTool,
    listing,
    offer,
)

WORDS = st.text(st.sampled_from("aZ09_-. /é\n"), max_size=70)


def tool(name: str, description: str = "", **schema: Any) -> McpTool:
    return McpTool(name, description, schema)


def test_a_plain_name_shows_server_and_tool() -> None:
    assert model_names([("tiny", "add")]) == {"mcp__tiny__add": ("tiny", "add")}


@given(st.lists(st.tuples(WORDS, WORDS), unique=True, max_size=12))
def test_names_are_what_models_take_and_each_is_of_one_tool(pairs) -> None:
    names = model_names(pairs)
    assert sorted(names.values()) == sorted(pairs)
    for name in names:
        assert 0 < len(name) <= MAX_NAME_CHARACTERS
        assert name.isascii()
        assert name.replace("_", "").replace("-", "").isalnum()


def test_names_that_would_be_the_same_are_told_apart() -> None:
    names = model_names([("a", "b.c"), ("a", "b c"), ("a", "b_c")])
    assert next(iter(names)) == "mcp__a__b_c"
    assert len(names) == 3


def test_a_long_name_is_the_same_whichever_other_tools_there_are() -> None:
    long = ("server", "x" * 100)
    [alone] = model_names([long])
    assert alone in model_names([("server", "y" * 100), long, ("a", "b")])


def test_a_tool_is_chosen_by_the_lists_of_the_configuration() -> None:
    tools = [tool("a"), tool("b"), tool("c")]

    def names(**lists: Any) -> list[str]:
        return [one.name for one in listing(McpServer("s", **lists), tools).tools]

    assert names() == ["a", "b", "c"]
    assert names(only=frozenset({"a", "b"}), without=frozenset({"b"})) == ["a"]
    assert names(only=frozenset()) == []


def test_descriptions_of_tools_are_bounded() -> None:
    huge = tool("huge", properties={"x": {"description": "x" * SCHEMA_LIMIT}})
    found = listing(McpServer("s"), [huge, *(tool(str(at)) for at in range(MAX_TOOLS + 5))])
    assert len(found.tools) == MAX_TOOLS
    assert [words.split()[0] for words in found.left_out] == ["its", "only"]
    long = offer("name", tool("a", "d" * 100_000))
    assert len(long["description"]) < DESCRIPTION_LIMIT + 30


def test_a_schema_without_properties_is_an_object_that_has_none() -> None:
    assert offer("name", tool("a"))["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.usefixtures("mcp_sdk")
async def test_a_list_that_changes_is_known_to_the_next_model_call(tmp_path) -> None:
    replies = [calls("mcp__odd__more"), calls("mcp__odd__late", "call_2"), says("ok")]
    settings = with_servers(odd(only=frozenset({"more", "late"})))
    async with session(tmp_path, replies, settings=settings) as peer:
        await peer.run_turn(await peer.start_thread())
    assert [offered(body) for body in peer.side.bodies] == [
        ["mcp__odd__more"],
        ["mcp__odd__more", "mcp__odd__late"],
        ["mcp__odd__more", "mcp__odd__late"],
    ]
    assert peer.told_model() == "better than never"


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.usefixtures("mcp_sdk")
async def test_tools_of_two_servers_with_the_same_names_reach_their_own(tmp_path) -> None:
    two = with_servers(tiny(name="one"), tiny(name="two"))
    replies = [calls("mcp__two__add", a=1, b=1), says("ok")]
    async with session(tmp_path, replies, settings=two) as peer:
        await peer.run_turn(await peer.start_thread())
    assert offered(peer.side.bodies[0]) == [
        "mcp__one__add",
        "mcp__one__fail",
        "mcp__two__add",
        "mcp__two__fail",
    ]
    [item] = peer.completed_items("mcpToolCall")
    assert item["server"] == "two"


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.usefixtures("mcp_sdk")
async def test_progress_is_told_while_the_call_runs_and_is_bounded(tmp_path) -> None:
    replies = [calls("mcp__odd__progress"), calls("mcp__odd__flood", "call_2", count=2_000)]
    async with session(tmp_path, [*replies, says("ok")], settings=with_servers(odd())) as peer:
        thread = await peer.start_thread()
        turn = (await peer.run_turn(thread))["id"]
    first, second = peer.completed_items("mcpToolCall")
    told = peer.params_of("item/mcpToolCall/progress")
    assert [one for one in told if one["itemId"] == first["id"]] == [
        {"threadId": thread, "turnId": turn, "itemId": first["id"], "message": message}
        for message in ("one", "2 of 3", "3")
    ]
    flood = [one["message"] for one in told if one["itemId"] == second["id"]]
    assert len(flood) == 1_000
    assert max(map(len, flood)) < 1_100
    methods = [
        (m["method"], (m["params"].get("item") or {}).get("id") or m["params"].get("itemId"))
        for m in peer.seen
        if m.get("method", "").startswith("item/")
    ]
    mine = [method for method, item in methods if item == first["id"]]
    assert mine == ["item/started", *["item/mcpToolCall/progress"] * 3, "item/completed"]
    assert json.dumps(second["result"]["content"]) == '[{"type": "text", "text": "done"}]'
