"""Our own standard streams, and those of a process, as sides of a conversation.

The descriptors are shared with other programs, so their mode is never changed.
"""

import os
import select
import stat
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
from anyio.abc import Process

from harness.errors import TargetGone
from harness.faults.live.pieces import Cutter, Piece, all_written
from harness.trace.frame import Frame

_CHUNK = 64 * 1024
# As much can be written at once to a pipe that is said to take something (POSIX).
_ATOMIC = select.PIPE_BUF
# How reading from a process ends.
GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


class OwnStreams:
    """The client on our standard input and output."""

    def __init__(self) -> None:
        self._cutter = Cutter()

    async def receive(self) -> list[Piece]:
        """Lines of the client, nothing at the end."""
        return await lines(self._read, self._cutter)

    async def _read(self) -> bytes:
        await _until(anyio.wait_readable, 0)
        try:
            return os.read(0, _CHUNK)
        except OSError:
            return b""

    async def send(self, frames: list[Frame]) -> None:
        """Write to the client. Raises `TargetGone`."""
        await written_to(1, all_written(frames))

    async def close(self) -> None:
        """The client sees the end when we end."""

    async def gone(self) -> None:
        """Wait until nobody can read what we write, as far as the system tells.

        It tells of pipes and sockets: one that only we write to becomes readable when its other end
        is closed.
        """
        out, our_input = os.fstat(1), os.fstat(0)
        is_pipe = stat.S_ISFIFO(out.st_mode) or stat.S_ISSOCK(out.st_mode)
        if not is_pipe or (out.st_dev, out.st_ino) == (our_input.st_dev, our_input.st_ino):
            await anyio.sleep_forever()
        await _until(anyio.wait_readable, 1)


class ProcessStreams:
    """The server on the pipes of its process."""

    def __init__(self, process: Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process has no pipes")
        self._in, self._out = process.stdin, process.stdout
        self._cutter = Cutter()

    async def receive(self) -> list[Piece]:
        """Lines of the server, nothing at the end."""
        return await lines(self._read, self._cutter)

    async def _read(self) -> bytes:
        try:
            return await self._out.receive(_CHUNK)
        except GONE:
            return b""

    async def send(self, frames: list[Frame]) -> None:
        """Write to the server. Raises `TargetGone`."""
        try:
            await self._in.send(all_written(frames))
        except GONE as error:
            raise TargetGone("the server closed its input") from error

    async def close(self) -> None:
        """The server sees the end of its input."""
        try:
            await self._in.aclose()
        except GONE:
            return


async def lines(read: Callable[[], Awaitable[bytes]], cutter: Cutter) -> list[Piece]:
    """The next lines; after the last bytes what has no line end, then nothing."""
    while chunk := await read():
        if pieces := cutter.feed(chunk):
            return pieces
    return cutter.end()


async def written_to(descriptor: int, data: bytes) -> None:
    """Write to a descriptor of ours. Raises `TargetGone`."""
    view = memoryview(data)
    while view:
        await _until(anyio.wait_writable, descriptor)
        try:
            written = os.write(descriptor, view[:_ATOMIC])
        except OSError as error:
            raise TargetGone("the client reads no more") from error
        view = view[written:]


async def _until(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:
        # A file: it can always be read and written.
        await anyio.lowlevel.checkpoint()
