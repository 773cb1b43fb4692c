"""One run of `agent mcp`: its output on both streams, its end, and the files of the home."""

import os
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from harness.client.target.process import ServerProcess, start
from harness.errors import TargetGone

# So much of a stream is kept. A command prints a few lines.
MAX_OUTPUT: Final = 1024 * 1024
# Of a home so many files are listed beside config.toml and those that hold a secret, and larger
# ones are not read.
MAX_FILES, MAX_BYTES = 40, 4 * 1024 * 1024
CONFIG: Final = "config.toml"
# Tables and messages are as wide as they want to be: nobody says how a narrow screen breaks them.
WIDE: Final = {"COLUMNS": "400", "LINES": "100"}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command to run: `scratch` is a folder for what only this run needs."""

    argv: list[str]
    cwd: Path
    env: Mapping[str, str]
    scratch: Path
    grace: float
    owner: str


@dataclass(slots=True)
class Finished:
    """The end of a run. `cut`: the harness ended it; `survivors` are processes left behind."""

    status: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    cut: bool = False
    survivors: tuple[str, ...] = ()


@dataclass(slots=True)
class _Streams:
    """Output so far; `noticed` gets both streams together each time that something came."""

    noticed: Callable[[str], Awaitable[None]]
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)

    async def tell(self) -> None:
        """Tell what came."""
        await self.noticed(_text(bytes(self.stdout)) + "\n" + _text(bytes(self.stderr)))


async def run_command(
    invocation: Invocation, within: anyio.CancelScope, noticed: Callable[[str], Awaitable[None]]
) -> Finished:
    """Run it to its end, or until `within` is cancelled. Raises `NotStarted`."""
    scratch = invocation.scratch
    errors, temporary = scratch / "stderr", scratch / "tmp"
    temporary.mkdir()
    # A pipe in place of a file: the reader is told what is written, as it is written.
    os.mkfifo(errors)
    reader = os.open(errors, os.O_RDONLY | os.O_NONBLOCK)
    streams = _Streams(noticed)
    try:
        process = await start(
            invocation.argv,
            cwd=invocation.cwd,
            env={**invocation.env, **WIDE},
            stderr=errors,
            owner=invocation.owner,
            home=invocation.cwd,
            temporary=temporary,
            option="--agent-cmd",
        )
        try:
            with within:
                await _read_all(process, reader, streams)
        finally:
            ended = await process.stop(invocation.grace)
    finally:
        os.close(reader)
    return Finished(
        status=ended.returncode,
        stdout=bytes(streams.stdout),
        stderr=bytes(streams.stderr),
        cut=within.cancelled_caught,
        survivors=ended.survivors,
    )


async def _read_all(process: ServerProcess, reader: int, streams: _Streams) -> None:
    await process.transport.aclose()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_errors, reader, streams)
        await _read_output(process, streams)
        await process.wait()
        # Whoever it left behind may hold its standard error open: that is no output of the run.
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
            if len(streams.stdout) < MAX_OUTPUT:
                streams.stdout += line.raw + end
        await streams.tell()


async def _read_errors(reader: int, streams: _Streams) -> None:
    while True:
        await anyio.wait_readable(reader)
        if not await _drain(reader, streams):
            return


async def _drain(reader: int, streams: _Streams) -> bool:
    """Take what is there; False where nobody can write any more."""
    while True:
        try:
            chunk = os.read(reader, 65536)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        if len(streams.stderr) < MAX_OUTPUT:
            streams.stderr += chunk
        await streams.tell()


def files_of(home: Path, watched: Mapping[str, str]) -> list[dict[str, Any]]:
    """The files of a home, as a message has them; `watched` are secrets by their names."""
    found: list[dict[str, Any]] = []
    others = 0
    for folder, folders, names in os.walk(home):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            shown = _file(path, path.relative_to(home).as_posix(), watched)
            if shown is None:
                continue
            plain = "text" not in shown and "holds" not in shown
            others += plain
            if not plain or others <= MAX_FILES:
                found.append(shown)
    return found


def _file(path: Path, name: str, watched: Mapping[str, str]) -> dict[str, Any] | None:
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            return None
        content = path.read_bytes() if state.st_size <= MAX_BYTES else b""
    except OSError:
        return None
    shown: dict[str, Any] = {
        "path": name,
        "mode": f"{stat.S_IMODE(state.st_mode):04o}",
        "size": state.st_size,
    }
    held = [key for key, secret in watched.items() if secret and secret.encode() in content]
    if held:
        shown["holds"] = held
    if name == CONFIG:
        try:
            shown["text"] = content.decode()
        except UnicodeDecodeError:
            shown["text"] = None
    return shown


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def message_of(finished: Finished, files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The end of a run, as a message has it."""
    message: dict[str, Any] = {
        "status": finished.status,
        "stdout": _text(finished.stdout),
        "stderr": _text(finished.stderr),
        "files": list(files),
    }
    return {**message, "cut": True} if finished.cut else message
