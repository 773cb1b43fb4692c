"""Signals that another thread receives while a command changes what they do."""

import subprocess
import sys

import pytest

from tests.processes import BOUND

pytestmark = [pytest.mark.socket, pytest.mark.slow]

STORM = """
import os, signal, sys, threading
import anyio

NUMBERS = (signal.SIGTERM, signal.SIGINT)
sys.path.insert(0, "")
begun, ended = threading.Event(), threading.Event()

def send_signals():
    begun.wait()
    while not ended.is_set():
        for number in NUMBERS:
            os.kill(os.getpid(), number)

{waiting}

thread = threading.Thread(target=send_signals)

async def main():
    # The other thread receives its own signals: this one must not take them from it.
    thread.start()
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    async with anyio.create_task_group() as tasks:
        await tasks.start(wait)
        begun.set()

anyio.run(main)
ended.set()
thread.join()
print("whole")
"""
HARNESS = """
from harness.cli.end_signals import received_signals

async def wait(task_status):
    with received_signals(NUMBERS) as signals:
        task_status.started()
        async for number in signals:
            assert number in NUMBERS
            break
"""
SERVER = """
from reference_server.cli.process import FirstSignal

async def wait(task_status):
    came = anyio.Event()
    signals = FirstSignal(NUMBERS)
    signals.call(lambda number: came.set())
    task_status.started()
    await came.wait()
    signals.ignore()
"""


@pytest.mark.parametrize("waiting", [HARNESS, SERVER], ids=["harness", "reference_server"])
def test_no_signal_ends_a_process_or_is_told_of_while_its_handler_is_changed(waiting: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", STORM.format(waiting=waiting)],
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"whole\n", b"")
