"""Contract suites run on one event loop, with a bound on everything they wait for."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
