"""MCP servers for tests of the reference server: their settings, logs and states."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from session_peer import BOUND, Peer, config

from reference_server.config.mcp import McpServer
from reference_server.config.model import Config
from reference_server.mcp.link import Attempt

TINY = Path(__file__).parents[2] / "scenarios" / "tools" / "tiny_mcp.py"
"""Server with the tools `add`, `fail` and others that scenarios need; standard library only."""
PROGRAM = Path(__file__).with_name("mcp_program.py")
"""Server that misbehaves on demand."""


def tiny(script: Path = TINY, *, name: str = "tiny") -> McpServer:
    """Return the settings of a server with only the tools `add` and `fail` of `TINY`."""
    return program(script, name=name, only=frozenset({"add", "fail"}))


def program(script: Path, *args: str, name: str, **more: Any) -> McpServer:
    """Return the settings of a server that is a Python script."""
    return McpServer(name, command=sys.executable, args=("-S", "-E", str(script), *args), **more)


def odd(*args: str, **more: Any) -> McpServer:
    """Return the settings of the server `odd`, which misbehaves on demand."""
    return program(PROGRAM, *args, name="odd", **more)


def with_servers(*servers: McpServer, **environment: str) -> Config:
    """Return a configuration with these MCP servers."""
    named = {server.name: server for server in servers}
    return replace(config(), mcp_servers=named, environment=environment)


def methods_in(log: Path) -> list[str]:
    """Return the methods of the messages in a server's log; "answer" for a response."""
    text = log.read_text() if log.exists() else ""
    return [json.loads(line).get("method", "answer") for line in text.splitlines()]


async def until_in(log: Path, method: str, bound: float = BOUND) -> list[str]:
    """Wait until a server has received this method; return the methods received so far."""
    with anyio.fail_after(bound):
        while method not in (found := methods_in(log)):
            await anyio.lowlevel.checkpoint()
    return found


def offered(body: dict[str, Any]) -> list[str]:
    """Return the names of MCP tools in the body of a model call."""
    return [tool["name"] for tool in body["tools"] if tool.get("name", "").startswith("mcp__")]


def _attempt(peer: Peer, name: str) -> Attempt:
    servers = peer.server.services.tools.mcp
    assert servers is not None
    attempt = servers._links[name]._attempt
    assert attempt is not None
    return attempt


async def settled(peer: Peer, name: str) -> None:
    """Wait until a server has started or failed to start."""
    with anyio.fail_after(BOUND):
        await _attempt(peer, name).settled.wait()


async def ended(peer: Peer, name: str) -> None:
    """End a server's program, as if it exited by itself, and wait for that."""
    attempt = _attempt(peer, name)
    attempt.stop.set()
    with anyio.fail_after(BOUND):
        await attempt.finished.wait()
