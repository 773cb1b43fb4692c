"""MCP servers for the tests of the reference server: the settings of one, and a session with it."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from session_peer import config

from reference_server.config.mcp import McpServer
from reference_server.config.model import Config

TINY = Path(__file__).parents[2] / "scenarios" / "tools" / "tiny_mcp.py"
"""Standard library only: `add` and `fail`."""


def program(script: Path, name: str = "tiny", **more: Any) -> McpServer:
    """Give the settings of a server that is a Python script."""
    return McpServer(name, command=sys.executable, args=("-S", "-E", str(script)), **more)


def with_servers(*servers: McpServer, **environment: str) -> Config:
    """Give the settings of a test with these servers."""
    named = {server.name: server for server in servers}
    return replace(config(), mcp_servers=named, environment=environment)
