"""One run of a driver program: its request, its lines as they arrive, its exit."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from harness.client.target.confine.command import Confinement
from harness.client.target.process import ServerProcess, start
from harness.errors import TargetGone
from harness.protocol.values import obj


@dataclass(frozen=True, slots=True)
class DriverSetup:
    """Environment of drivers. `places` are the values of a scenario's placeholders.

    `agent_name` is the file name of the agent's program.
    """

    command: list[str]
    env: Mapping[str, str]
    cwd: Path
    scratch: Path
    places: Mapping[str, str]
    owner: str
    agent_name: str = "agent"
    confinement: Confinement | None = None


@dataclass(frozen=True, slots=True)
class DriverEnd:
    """The exit of a driver: whether our bound ended it, end of stderr, processes left behind."""

    cut: bool = False
    stderr: str = ""
    survivors: tuple[str, ...] = ()


def deadline_scope(bound: float) -> anyio.CancelScope:
    """Return a scope with a deadline `bound` seconds from now."""
    return anyio.CancelScope(deadline=anyio.current_time() + bound)


async def drive(
    setup: DriverSetup,
    request: Mapping[str, Any],
    *,
    scratch: Path,
    scope: anyio.CancelScope,
    grace: float,
    take: Callable[[bytes], None],
    hang_fd: int | None = None,
) -> DriverEnd:
    """Run a driver to its end, or until `scope` ends; `take` is called with each output line.

    When the file descriptor `hang_fd` becomes readable, the driver is sent an abort. Raises
    `NotStarted`, and any exception of `take`.
    """
    temporary = scratch / "tmp"
    temporary.mkdir()
    process = await start(
        setup.command,
        cwd=setup.cwd,
        env=setup.env,
        stderr=scratch / "stderr",
        owner=setup.owner,
        home=setup.cwd,
        temporary=temporary,
        option="--sdk-cmd",
        confinement=setup.confinement,
    )
    try:
        with scope:
            await _converse(process, request, hang_fd, take)
    finally:
        ended = await process.stop(grace)
    stderr, _ = process.stderr_since(0, 4000)
    errors = stderr.decode("utf-8", "backslashreplace")
    return DriverEnd(scope.cancelled_caught, errors, ended.survivors)


async def _converse(
    process: ServerProcess,
    request: Mapping[str, Any],
    hang_fd: int | None,
    take: Callable[[bytes], None],
) -> None:
    broken: Exception | None = None
    async with anyio.create_task_group() as tasks:
        if hang_fd is not None:
            tasks.start_soon(_abort_when_hanging, process, hang_fd)
        try:
            await process.transport.send_bytes(json.dumps(request).encode() + b"\n")
            while True:
                for line in await process.transport.receive():
                    take(line.raw)
        except TargetGone:
            await process.wait()
        except Exception as error:
            broken = error  # Raised below, since a task group would wrap it.
        tasks.cancel_scope.cancel()
    if broken is not None:
        raise broken


async def _abort_when_hanging(process: ServerProcess, hang_fd: int) -> None:
    """Send the driver an abort when the agent has written all its events."""
    await anyio.wait_readable(hang_fd)
    if os.read(hang_fd, 64):
        with contextlib.suppress(TargetGone):
            await process.transport.send_bytes(b'{"abort": true}\n')


def line_of(raw: bytes) -> dict[str, Any] | None:
    """Return a driver's line about one of its turns, parsed; None for any other output."""
    try:
        line = obj(json.loads(raw))
    except (ValueError, RecursionError):
        return None
    is_turn_line = isinstance(line.get("turn"), int) and ("event" in line or "over" in line)
    return line if is_turn_line else None


def describe_missing_end(turn: int, end: DriverEnd, other: list[str]) -> str:
    """Describe a driver that did not report a turn's end; `other` are its lines about no turn."""
    reason = "it was ended at the bound" if end.cut else "it ended before"
    output = f"; it wrote {other[-1][:200]!r}" if other else ""
    errors = f"; the end of its stderr: {end.stderr[-400:]}" if end.stderr else ""
    return f"the driver reported no end of turn {turn}: {reason}{output}{errors}"
