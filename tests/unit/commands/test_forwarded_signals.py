"""Signals that a proxy forwards to its server."""

import signal
import subprocess
import sys

import anyio
import pytest

from harness.cli.commands.proxy import send_signal


@pytest.mark.socket
async def test_forwarding_a_signal_takes_no_exit_status_from_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = await anyio.open_process([sys.executable, "-c", "import sys; sys.stdin.read()"])
    # A poll that sees the end first makes the event loop report 255.
    monkeypatch.setattr(subprocess.Popen, "poll", lambda _: pytest.fail("it is polled"))
    send_signal(process, signal.SIGTERM)
    assert await process.wait() == -signal.SIGTERM
    send_signal(process, signal.SIGTERM)
    await process.aclose()
