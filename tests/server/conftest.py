"""Shared set-up of the reference server's tests: one event loop, no leftovers of the machine."""

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
