"""Shared set-up of the reference server's tests: one event loop, no leftovers of the machine."""

import shutil
import subprocess

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Skip where bubblewrap does not work; asked without our own code."""
    options = ("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all")
    works = shutil.which("bwrap") and not subprocess.run(["bwrap", *options, "true"]).returncode
    if not works:
        pytest.skip("bubblewrap does not work here")
