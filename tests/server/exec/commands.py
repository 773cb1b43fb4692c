"""Helpers for tests of commands: output, blocking pipes, and processes that outlive a command."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from reference_server.sandbox.process import Command, Finished, Running

BOUND = 30
"""Maximum seconds of a wait for a command, on a machine under load."""
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def shell(script: str, cwd: Path | str, **options) -> Command:
    options.setdefault("env", {"PATH": PATH, "LC_ALL": "C"})
    return Command(("/bin/bash", "-c", script), str(cwd), **options)


class Heard:
    """Output of a command so far, with waits for more."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._more = anyio.Event()

    async def __call__(self, piece: str) -> None:
        self.pieces.append(piece)
        self._more.set()
        self._more = anyio.Event()

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    async def until(self, holds: Callable[[str], object]) -> None:
        with anyio.fail_after(BOUND):
            while not holds(self.text):
                await self._more.wait()

    async def pids(self, count: int) -> list[int]:
        """Wait for `count` lines, each with a process id, and return the ids."""
        await self.until(lambda text: text.count("\n") >= count)
        return [int(word) for word in self.text.split()]


async def finished(command: Command) -> Finished:
    heard = Heard()
    with anyio.fail_after(BOUND):
        result = await Running(command).run(heard)
    assert heard.text == result.output
    return result


def living(*pids: int) -> list[int]:
    """Return the process ids that still exist, also as zombies."""
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


async def ended(*watched: int) -> None:
    """Wait until the processes of these pidfds have ended; close the pidfds."""
    with anyio.fail_after(BOUND):
        for fd in watched:
            await anyio.wait_readable(fd)
            os.close(fd)


def fifo(folder: Path, name: str = "never") -> Path:
    """Create a named pipe on which `read x < name` blocks until it is opened for writing."""
    path = folder / name
    os.mkfifo(path)
    return path
