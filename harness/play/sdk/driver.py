"""One run of a driver program: its request, its lines as they come, its end."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from harness.client.target.process import ServerProcess, start
from harness.errors import TargetGone
from harness.protocol.values import obj


@dataclass(frozen=True, slots=True)
class Desk:
    """The surroundings of drivers. `places` stand for the placeholders of a scenario."""

    command: list[str]
    env: Mapping[str, str]
    cwd: Path
    scratch: Path
    places: Mapping[str, str]
    owner: str


@dataclass(frozen=True, slots=True)
class DriverEnd:
    """The end of a driver: whether it was at our bound, the end of its standard error, and the
    processes that it left behind.
    """

    cut: bool = False
    stderr: str = ""
    survivors: tuple[str, ...] = ()


def within_seconds(bound: float) -> anyio.CancelScope:
    """A scope that ends so many seconds from now."""
    return anyio.CancelScope(deadline=anyio.current_time() + bound)


async def drive(
    desk: Desk,
    request: Mapping[str, Any],
    *,
    scratch: Path,
    within: anyio.CancelScope,
    grace: float,
    take: Callable[[bytes], None],
    hanging: int | None = None,
) -> DriverEnd:
    """Run a driver to its end, or until `within` ends; `take` gets each line that it writes.

    When the file descriptor `hanging` can be read, the driver is told to abort. Raises
    `NotStarted`, and whatever `take` raises.
    """
    temporary = scratch / "tmp"
    temporary.mkdir()
    process = await start(
        desk.command,
        cwd=desk.cwd,
        env=desk.env,
        stderr=scratch / "stderr",
        owner=desk.owner,
        home=desk.cwd,
        temporary=temporary,
        option="--sdk-cmd",
    )
    try:
        with within:
            await _conversed(process, request, hanging, take)
    finally:
        ended = await process.stop(grace)
    told, _ = process.stderr_since(0, 4000)
    errors = told.decode("utf-8", "backslashreplace")
    return DriverEnd(within.cancelled_caught, errors, ended.survivors)


async def _conversed(
    process: ServerProcess,
    request: Mapping[str, Any],
    hanging: int | None,
    take: Callable[[bytes], None],
) -> None:
    broken: Exception | None = None
    async with anyio.create_task_group() as tasks:
        if hanging is not None:
            tasks.start_soon(_abort_when_hanging, process, hanging)
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


async def _abort_when_hanging(process: ServerProcess, hanging: int) -> None:
    """Tell the driver to abort when the agent has written what it had to write."""
    await anyio.wait_readable(hanging)
    if os.read(hanging, 64):
        with contextlib.suppress(TargetGone):
            await process.transport.send_bytes(b'{"abort": true}\n')


def line_of(raw: bytes) -> dict[str, Any] | None:
    """A line of a driver's answer, which says its turn; None for whatever else it printed."""
    try:
        line = obj(json.loads(raw))
    except (ValueError, RecursionError):
        return None
    said = isinstance(line.get("turn"), int) and ("event" in line or "over" in line)
    return line if said else None


def no_end(turn: int, end: DriverEnd, other: list[str]) -> str:
    """That a driver told no end of a turn, and what shows why; `other` are lines of no turn."""
    why = "it was ended at the bound" if end.cut else "it ended before"
    shown = f"; it wrote {other[-1][:200]!r}" if other else ""
    errors = f"; the end of its stderr: {end.stderr[-400:]}" if end.stderr else ""
    return f"the driver told no end of turn {turn}: {why}{shown}{errors}"
