"""One run of `agent mcp`: its output on both streams, its exit, and the files of the home."""

import os
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from harness.client.target.confine.command import Confinement
from harness.client.target.process import ServerProcess, start
from harness.errors import TargetGone

# Bytes kept of each stream; a command prints a few lines.
MAX_OUTPUT_BYTES: Final = 1024 * 1024
# The files of a home that are listed beside config.toml and those that hold a secret; larger
# files are not read.
MAX_FILES, MAX_FILE_BYTES = 40, 4 * 1024 * 1024
CONFIG: Final = "config.toml"
# A wide terminal, since the specification does not say how output is wrapped on a narrow one.
WIDE_TERMINAL: Final = {"COLUMNS": "400", "LINES": "100"}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command to run; `scratch` is a folder that only this run uses, `grace` is in seconds."""

    argv: list[str]
    cwd: Path
    env: Mapping[str, str]
    scratch: Path
    grace: float
    owner: str
    confinement: Confinement | None = None


@dataclass(slots=True)
class CommandResult:
    """The exit of a run. `cut`: the harness ended it; `survivors` are processes left behind."""

    status: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    cut: bool = False
    survivors: tuple[str, ...] = ()


@dataclass(slots=True)
class _Streams:
    """Output so far; whenever more arrives, `on_output` is called with all of it, stdout first."""

    on_output: Callable[[str], Awaitable[None]]
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)

    async def notify(self) -> None:
        """Pass the output so far to `on_output`."""
        await self.on_output(_text(bytes(self.stdout)) + "\n" + _text(bytes(self.stderr)))


async def run_command(
    invocation: Invocation, scope: anyio.CancelScope, on_output: Callable[[str], Awaitable[None]]
) -> CommandResult:
    """Run a command until it or `scope` ends. Raises `NotStarted` if it cannot be started."""
    scratch = invocation.scratch
    errors, temporary = scratch / "stderr", scratch / "tmp"
    temporary.mkdir()
    # A pipe in place of a file, so that output can be read as it is written.
    os.mkfifo(errors)
    reader = os.open(errors, os.O_RDONLY | os.O_NONBLOCK)
    streams = _Streams(on_output)
    try:
        process = await start(
            invocation.argv,
            cwd=invocation.cwd,
            env={**invocation.env, **WIDE_TERMINAL},
            stderr=errors,
            owner=invocation.owner,
            home=invocation.cwd,
            temporary=temporary,
            option="--agent-cmd",
            confinement=invocation.confinement,
        )
        try:
            with scope:
                await _read_all(process, reader, streams)
        finally:
            ended = await process.stop(invocation.grace)
    finally:
        os.close(reader)
    return CommandResult(
        status=ended.returncode,
        stdout=bytes(streams.stdout),
        stderr=bytes(streams.stderr),
        cut=scope.cancelled_caught,
        survivors=ended.survivors,
    )


async def _read_all(process: ServerProcess, reader: int, streams: _Streams) -> None:
    await process.transport.aclose()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_errors, reader, streams)
        await _read_output(process, streams)
        await process.wait()
        # A process left behind may hold standard error open, but its output is not the run's.
        await _drain(reader, streams)
        tasks.cancel_scope.cancel()


async def _read_output(process: ServerProcess, streams: _Streams) -> None:
    while True:
        try:
            lines = await process.transport.receive()
        except TargetGone:
            return
        for line in lines:
            end = b"" if line.damage is not None else b"\n"
            if len(streams.stdout) < MAX_OUTPUT_BYTES:
                streams.stdout += line.raw + end
        await streams.notify()


async def _read_errors(reader: int, streams: _Streams) -> None:
    while True:
        await anyio.wait_readable(reader)
        if not await _drain(reader, streams):
            return


async def _drain(reader: int, streams: _Streams) -> bool:
    """Read all available output; return False if no process has the stream open any more."""
    while True:
        try:
            chunk = os.read(reader, 65536)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        if len(streams.stderr) < MAX_OUTPUT_BYTES:
            streams.stderr += chunk
        await streams.notify()


def files_of(home: Path, secrets: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row for each file of a home; `secrets` maps names to values to look for.

    Files other than config.toml without a secret are listed up to `MAX_FILES`.
    """
    rows: list[dict[str, Any]] = []
    other_files = 0
    for folder, folders, names in os.walk(home):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            row = _file_row(path, path.relative_to(home).as_posix(), secrets)
            if row is None:
                continue
            plain = "text" not in row and "holds" not in row
            other_files += plain
            if not plain or other_files <= MAX_FILES:
                rows.append(row)
    return rows


def _file_row(path: Path, name: str, secrets: Mapping[str, str]) -> dict[str, Any] | None:
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            return None
        content = path.read_bytes() if state.st_size <= MAX_FILE_BYTES else b""
    except OSError:
        return None
    row: dict[str, Any] = {
        "path": name,
        "mode": f"{stat.S_IMODE(state.st_mode):04o}",
        "size": state.st_size,
    }
    secret_names = [key for key, secret in secrets.items() if secret and secret.encode() in content]
    if secret_names:
        row["holds"] = secret_names
    if name == CONFIG:
        try:
            row["text"] = content.decode()
        except UnicodeDecodeError:
            row["text"] = None
    return row


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def message_of(finished: CommandResult, files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the result of a run and the files after it as a message for the trace."""
    message: dict[str, Any] = {
        "status": finished.status,
        "stdout": _text(finished.stdout),
        "stderr": _text(finished.stderr),
        "files": list(files),
    }
    return {**message, "cut": True} if finished.cut else message
