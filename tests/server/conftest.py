"""Shared set-up of the reference server's tests: one event loop, no leftovers of the machine."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
