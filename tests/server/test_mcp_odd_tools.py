"""Invalid tools of an MCP server: only these are left out, and each is reported."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_side import odd, offered, with_servers
from model_side import calls, says
from session_peer import session

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("mcp_sdk")]

OBJECT = {"type": "object", "properties": {}}
LEFT_OUT: dict[str, tuple[Any, str]] = {
    "empty": ({"inputSchema": {}}, "its inputSchema must have the type object, and has none"),
    "none": ({}, "its inputSchema is missing"),
    "null": ({"inputSchema": None}, "its inputSchema must be an object, not null"),
    "array": (
        {"inputSchema": {"type": "array"}},
        'its inputSchema must have the type object, not "array"',
    ),
    "list": ({"inputSchema": []}, "its inputSchema must be an object, not []"),
    "text": ({"inputSchema": "object"}, 'its inputSchema must be an object, not "object"'),
    "large": (
        {"inputSchema": {**OBJECT, "description": "x" * 40_000}},
        "its schema has 40,055 characters, more than 32,000",
    ),
}
NAMELESS = [
    (3, "it is not an object"),
    (None, "it is not an object"),
    ({"inputSchema": OBJECT}, "its name is missing or not a string"),
    ({"name": 3, "inputSchema": OBJECT}, "its name is missing or not a string"),
]
KEPT: dict[str, dict[str, Any]] = {
    "odd_description": {"description": 3},
    "null_description": {"description": None},
    "odd_title": {"title": ["x"], "description": "Told."},
    "odd_annotations": {"annotations": "none", "description": "Told."},
    "odd_output": {"outputSchema": 3, "description": "Told."},
    "extra": {"x-more": {"y": 1}, "description": "Told."},
}


@pytest.mark.parametrize("start", ["", "modern"])
async def test_each_odd_tool_is_left_out_alone_and_named(tmp_path: Path, start: str) -> None:
    tools: list[Any] = [{"name": name, **members} for name, (members, _) in LEFT_OUT.items()]
    tools += [tool for tool, _ in NAMELESS]
    tools += [{"name": name, "inputSchema": OBJECT, **more} for name, more in KEPT.items()]
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(tools))
    settings = with_servers(odd("--tools", str(file), "--start", start))
    replies = [calls("mcp__odd__echo", a=1), says("one"), says("two")]
    async with session(tmp_path, replies, settings=settings) as peer:
        thread = await peer.start_thread()
        for _ in range(2):
            assert (await peer.run_turn(thread))["status"] == "completed"
        [item] = peer.completed_items("mcpToolCall")
        assert item["status"] == "completed"
        names = offered(peer.side.bodies[0])
        told = [params["error"]["message"] for params in peer.params_of("error")]
        [kept] = [one for one in peer.side.bodies[0]["tools"] if one["name"].endswith("odd_title")]
    assert {f"mcp__odd__{name}" for name in KEPT} < set(names)
    assert not {f"mcp__odd__{name}" for name in LEFT_OUT} & set(names)
    assert kept["description"] == "Told."
    before = "The MCP server odd: its tool"
    expected = [f"{before} {name} is not offered: {why}" for name, (_, why) in LEFT_OUT.items()]
    number = len(names) - len(KEPT) + len(LEFT_OUT) + 1
    expected += [
        f"{before} number {at} is not offered: {why}"
        for at, (_, why) in enumerate(NAMELESS, number)
    ]
    # Each once on a thread.
    assert sorted(told) == sorted(expected)


async def test_many_odd_tools_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([{"name": f"odd{number}"} for number in range(500)]))
    settings = with_servers(odd("--tools", str(file)))
    async with session(tmp_path, [says("one")], settings=settings) as peer:
        await peer.run_turn(await peer.start_thread())
        told = [params["error"]["message"] for params in peer.params_of("error")]
        assert "mcp__odd__echo" in offered(peer.side.bodies[0])
    assert len(told) == 21
    assert told[-1] == "The MCP server odd: 480 more of its tools are not offered"
