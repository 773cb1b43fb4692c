"""`agent mcp` as a command: a child process with a home of its own."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.processes import COMMANDS, Said, run

pytestmark = [pytest.mark.socket, pytest.mark.slow]


def agent_mcp(folder: Path, *words: str) -> Said:
    return run([COMMANDS / "agent", "mcp", *words], cwd=folder, env={"HOME": str(folder)})


def test_a_server_is_added_listed_shown_and_removed(tmp_path: Path) -> None:
    said = agent_mcp(
        tmp_path, "add", "time", "--env", "TZ_KEY=s3cret", "--", "serve", "--env", "A=1"
    )
    assert said == Said(0, "Added global MCP server 'time'.\n")
    written = tomllib.loads((tmp_path / ".agent" / "config.toml").read_text())
    assert written["mcp_servers"]["time"] == {
        "enabled": True,
        "transport": {"type": "stdio", "command": "serve", "args": ["--env", "A=1"]},
        "env": {"TZ_KEY": "s3cret"},
    }
    heading, row = agent_mcp(tmp_path, "list").out.splitlines()
    assert heading.split() == ["Name", "Command", "Args", "Env", "Cwd", "Status", "Auth"]
    assert " ".join(row.split()) == "time serve --env A=1 TZ_KEY=***** - enabled unsupported"
    [listed] = json.loads(agent_mcp(tmp_path, "list", "--json").out)
    assert (listed["name"], listed["auth_status"]) == ("time", "unsupported")
    shown = json.loads(agent_mcp(tmp_path, "get", "time", "--json").out)
    assert shown["transport"]["type"] == "stdio"
    assert "  remove: agent mcp remove time\n" in agent_mcp(tmp_path, "get", "time").out
    assert agent_mcp(tmp_path, "remove", "time") == Said(0, "Removed global MCP server 'time'.\n")
    assert agent_mcp(tmp_path, "remove", "time") == Said(0, "No MCP server named 'time' exists.\n")
    assert agent_mcp(tmp_path, "list", "--json").out == "[]\n"
