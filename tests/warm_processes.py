"""Processes of tests/warm.py, one for each Python environment, shared by all workers of a run.

Importing the harness takes more than a second, so eight workers do not each have a process of their
own. With `-n`, a keeper, which is a fork of the controller, starts a process when the first worker
needs it, and hands the connections of all workers to it. Without `-n`, the tests' process does so.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from select import select
from typing import NoReturn

from tests import forks

ROOT = Path(__file__).parents[1]
_address = ""
"""The path of the keeper's socket, in the workers of a run."""


class WarmProcesses:
    """The processes that were started so far, each with the socket that takes connections to it."""

    def __init__(self) -> None:
        self._started: dict[str, tuple[subprocess.Popen[bytes], socket.socket]] = {}

    def hand_over(self, connection: socket.socket, python: str, env: Mapping[str, str]) -> None:
        """Give a connection to the process of this Python, which is started first if necessary.

        Raises OSError if the process has ended; the next connection starts another one.
        """
        if python not in self._started:
            self._started[python] = _start(python, env)
        process, line = self._started[python]
        try:
            socket.send_fds(line, [b"+"], [connection.fileno()])
        except OSError:
            del self._started[python]
            line.close()
            process.wait()
            raise

    def close(self) -> None:
        """Wait for the processes, which end when all connections to them are closed."""
        for _, line in self._started.values():
            line.close()
        for process, _ in self._started.values():
            process.wait()


def connect(python: str, env: Mapping[str, str]) -> socket.socket:
    """Return a connection to a process of tests/warm.py; it forks a server for each connection."""
    if _address:
        connection = socket.socket(socket.AF_UNIX)
        with ExitStack() as failing:
            failing.callback(connection.close)
            connection.connect(_address)
            forks.send(connection, {"python": python, "env": dict(env)}, [])
            # The keeper must not read what is sent to the process.
            if not connection.recv(1):
                raise RuntimeError(f"tests/warm.py of {python} has ended: see the run's output")
            failing.pop_all()
        return connection
    connection, theirs = socket.socketpair()
    with theirs:
        _own_processes().hand_over(theirs, python, env)
    return connection


def share() -> None:
    """Fork the keeper: the workers that are forked from now on share its processes."""
    global _address
    folder = tempfile.mkdtemp(prefix="warm-")
    _address = os.path.join(folder, "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(_address)
    listener.listen(64)
    # The end of the run closes it, also where the run is killed.
    life, held = os.pipe()
    if os.fork():
        os.close(life)
        listener.close()
        return
    os.close(held)
    _keep(listener, life, folder)


def _keep(listener: socket.socket, life: int, folder: str) -> NoReturn:
    """Be the keeper until the run has ended."""
    processes = WarmProcesses()
    try:
        while life not in select([listener, life], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                received = forks.receive(connection)
                # An error is told to the worker alone, by the end of its connection.
                with suppress(OSError):
                    if received is not None:
                        processes.hand_over(connection, received[0]["python"], received[0]["env"])
                        connection.sendall(b"+")
        processes.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


@cache
def _own_processes() -> WarmProcesses:
    processes = WarmProcesses()
    atexit.register(processes.close)
    return processes


def _start(python: str, env: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [python, "-P", str(ROOT / "tests" / "warm.py"), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            # It outlives the test that starts it, so it takes nothing from that test.
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
        )
    return process, ours
