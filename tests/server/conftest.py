"""Shared fixtures of the reference server's tests."""

from importlib import import_module

import pytest
from confined import NO_SANDBOX, missing


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Skip the test if bubblewrap does not work."""
    if missing():
        pytest.skip(NO_SANDBOX)


@pytest.fixture(scope="session")
def mcp_sdk() -> None:
    """Import the modules of MCP servers now: the slow import would use up the timeout of a test."""
    import_module("reference_server.mcp.session")
