"""A turn calls a third-party MCP server, `mcp-server-time`, over standard streams."""

import json
import sys
from pathlib import Path

import pytest
import session_peer
from mcp_side import offered, with_servers
from model_side import calls, says
from session_peer import session

from reference_server.config.mcp import McpServer

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("mcp_sdk")]

TIME = McpServer(
    "time",
    command=str(Path(sys.executable).with_name("mcp-server-time")),
    args=("--local-timezone", "UTC"),
    startup_timeout=60.0,
)
NOON = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}
NOWHERE = {**NOON, "target_timezone": "Nowhere/Land"}


async def test_a_turn_calls_it(tmp_path, monkeypatch) -> None:
    # It imports for seconds before it answers.
    monkeypatch.setattr(session_peer, "BOUND", 60.0)
    replies = [
        calls("mcp__time__convert_time", **NOON),
        calls("mcp__time__convert_time", "call_2", **NOWHERE),
        says("three in the morning"),
    ]
    async with session(tmp_path, replies, settings=with_servers(TIME)) as peer:
        turn = await peer.run_turn(await peer.start_thread())
    assert turn["status"] == "completed"
    assert peer.params_of("error") == []
    assert sorted(offered(peer.side.bodies[0])) == [
        "mcp__time__convert_time",
        "mcp__time__get_current_time",
    ]
    right, wrong = peer.completed_items("mcpToolCall")
    [block] = right["result"]["content"]
    assert json.loads(block["text"])["target"]["datetime"].split("T")[1] == "03:00:00+00:00"
    assert wrong["status"] == "failed"
    assert "Nowhere/Land" in wrong["error"]["message"]
    assert peer.told_model() == f"failed: {wrong['error']['message']}"
