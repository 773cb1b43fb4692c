"""Shared set-up of the reference server's tests: one event loop, no leftovers of the machine."""

from importlib import import_module

import pytest
from confined import NO_SANDBOX, missing


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Skip where bubblewrap does not work."""
    if missing():
        pytest.skip(NO_SANDBOX)


@pytest.fixture(scope="session")
def mcp_sdk() -> None:
    """Import what talks to MCP servers now: it takes long, and a test waits only so long."""
    import_module("reference_server.mcp.session")
