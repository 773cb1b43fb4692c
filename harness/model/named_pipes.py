"""Named pipes of a workspace: gates at which commands wait.

A command that writes a line into a pipe has reached its gate; one that reads a line from a pipe
continues when its gate is opened. No wait depends on time, and at the end all gates are opened.
"""

import contextlib
import os
from collections.abc import AsyncGenerator, Collection, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio

from harness.model.gates import Gates

_LINES = b"\n" * 64
"""Bytes written to an opened pipe: a line for each command that reads from it."""


@asynccontextmanager
async def named_pipes(
    folder: Path, pipes: Collection[str], written_by_commands: Collection[str], gates: Gates
) -> AsyncGenerator[None]:
    """Make the pipes in the folder, and serve them for the length of the block.

    Raises `OSError` if a pipe cannot be made.
    """
    failure: Exception | None = None
    with contextlib.ExitStack() as stack:
        ends = {name: stack.enter_context(_open_pipe(folder / name)) for name in pipes}
        async with anyio.create_task_group() as tasks:
            for name, end in ends.items():
                tasks.start_soon(
                    _wait_for_command if name in written_by_commands else _release_commands,
                    name,
                    end,
                    gates,
                )
            try:
                yield
            except Exception as error:
                # Raised below, since a task group would wrap it.
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure


async def _wait_for_command(name: str, end: int, gates: Gates) -> None:
    await anyio.wait_readable(end)
    gates.reach(name)


async def _release_commands(name: str, end: int, gates: Gates) -> None:
    await gates.wait_until_open(name)
    os.write(end, _LINES)


@contextmanager
def _open_pipe(path: Path) -> Generator[int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    # Open for both directions: commands need not wait for our side, and see no end of file.
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield end
    finally:
        os.close(end)
