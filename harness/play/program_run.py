"""A recorded run of one program: its input, output lines, standard error and exit.

The order of standard error and standard output is unknown, so standard error is one mark, written
when the program has ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from harness.client.target.confine.command import Confinement
from harness.client.target.process import ProcessExit, ServerProcess, start
from harness.errors import TargetGone
from harness.trace.frame import DamageKind, Direction
from harness.trace.marks import ProgramEnded, ProgramErrors, ProgramStarted
from harness.trace.recorder import Recorder, TraceFull
from harness.trace.trace import End

# Bytes kept of the end of standard error.
MAX_STDERR_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run: without a shell, with exactly this environment and exactly this input.

    `scratch` is an existing folder, for its standard error and its temporary files. `variables` are
    the names of the environment variables that the harness set.
    """

    argv: list[str]
    cwd: Path
    env: Mapping[str, str]
    scratch: Path
    stdin: bytes = b""
    variables: tuple[str, ...] = ()
    confinement: Confinement | None = None


async def run_program(
    recorder: Recorder,
    program: Program,
    *,
    connection: str = "p1",
    scope: anyio.CancelScope,
    grace: float,
    stop_requested: anyio.Event | None = None,
    owner: str = "program",
) -> ProcessExit:
    """Run a program to its end, record it as one connection, and set the end of the trace.

    A program that still runs when `scope` is cancelled or passes its deadline is ended, and the
    trace is TIMED_OUT. One that ends by itself can write nothing more: its trace is QUIESCENT.
    `grace` seconds pass between the end of input, TERM and KILL.

    When `stop_requested` is set, the program gets TERM as from a caller, and is read until it ends,
    for at most `grace` seconds. Missing output is not judged then: the trace is CLOSED.

    Raises `NotStarted`, and `TraceFull` when it writes more than a trace may hold.
    """
    errors, temporary = program.scratch / f"{connection}.stderr", program.scratch / connection
    temporary.mkdir()
    process = await start(
        program.argv,
        cwd=program.cwd,
        env=program.env,
        stderr=errors,
        owner=owner,
        home=program.cwd,
        temporary=temporary,
        option="--agent-cmd",
        confinement=program.confinement,
    )
    argv, cwd = tuple(program.argv), str(program.cwd)
    recorder.mark(ProgramStarted(connection, argv, cwd, program.variables))
    try:
        recorder.record(program.stdin, Direction.TO_TARGET, connection=connection)
        with scope:
            stderr = stop_requested or anyio.Event()
            await _converse(
                process, recorder, program.stdin, connection, _Ending(stderr, scope, grace)
            )
    finally:
        ended = await process.stop(grace)
    stderr, _ = process.stderr_since(0, MAX_STDERR_BYTES)
    recorder.mark(ProgramErrors(connection, stderr.decode("utf-8", "backslashreplace")))
    aborted = stop_requested is not None and stop_requested.is_set()
    push = "TERM" if aborted and ended.push == "none" else ended.push
    recorder.mark(ProgramEnded(connection, ended.returncode, push))
    pushed = any(mark.body.push != "none" for mark in recorder.trace.marks_of(ProgramEnded))
    if scope.cancelled_caught and not aborted:
        recorder.trace.end = End.TIMED_OUT
    elif recorder.trace.end is not End.TIMED_OUT:
        recorder.trace.end = End.CLOSED if pushed else End.QUIESCENT
    return ended


@dataclass(frozen=True, slots=True)
class _Ending:
    """Stop of a program: `stop_requested` sends TERM, and ends `scope` `grace` seconds later."""

    stop_requested: anyio.Event
    scope: anyio.CancelScope
    grace: float

    async def terminate_when_requested(self, process: ServerProcess) -> None:
        await self.stop_requested.wait()
        process.terminate()
        self.scope.deadline = min(self.scope.deadline, anyio.current_time() + self.grace)


async def _converse(
    process: ServerProcess, recorder: Recorder, stdin: bytes, connection: str, ending: _Ending
) -> None:
    """Write the input while reading the output: neither may block the other. Raises `TraceFull`."""
    full: TraceFull | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_write, process, stdin)
        tasks.start_soon(ending.terminate_when_requested, process)
        try:
            await _read(process, recorder, connection)
        except TraceFull as error:
            full = error  # Raised below, since a task group would wrap it.
        tasks.cancel_scope.cancel()
    if full is not None:
        raise full
    await process.transport.aclose()
    await process.wait()


async def _write(process: ServerProcess, stdin: bytes) -> None:
    try:
        if stdin:
            await process.transport.send_bytes(stdin)
    except TargetGone:
        return  # A program need not read its input.
    await process.transport.aclose()


async def _read(process: ServerProcess, recorder: Recorder, connection: str) -> None:
    while True:
        try:
            lines = await process.transport.receive()
        except TargetGone:
            return
        for line in lines:
            # The last line may lack its line end, but it is complete: the program has ended.
            cut_off = line.damage is not None and line.damage.kind is DamageKind.CUT_OFF
            damage = None if cut_off else line.damage
            recorder.record(line.raw, Direction.FROM_TARGET, connection=connection, damage=damage)
