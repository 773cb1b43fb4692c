"""Standard streams of this process, and the pipes of a server's, as sides of a relay.

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
from harness.faults.live.pieces import Cutter, Piece, encode_frames
from harness.trace.frame import Frame

_CHUNK = 64 * 1024
# A pipe that is writable takes this much at once (POSIX).
_ATOMIC = select.PIPE_BUF
# Errors with which reading from a process ends.
GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


class OwnStreams:
    """The client on the standard input and output of this process."""

    def __init__(self) -> None:
        self._cutter = Cutter()

    async def receive(self) -> list[Piece]:
        """Return lines of the client, an empty list at the end."""
        return await read_lines(self._read, self._cutter)

    async def _read(self) -> bytes:
        await _wait_ready(anyio.wait_readable, 0)
        try:
            return os.read(0, _CHUNK)
        except OSError:
            return b""

    async def send(self, frames: list[Frame]) -> None:
        """Write to the client. Raises `TargetGone` if it reads no more."""
        await write_all(1, encode_frames(frames))

    async def send_slices(self, frames: list[Frame]) -> None:
        """Write to the client byte by byte."""
        for byte in encode_frames(frames):
            await write_all(1, bytes([byte]))

    async def end_output(self) -> None:
        """Close our output; what is written later goes nowhere."""
        _forget_descriptors(1)

    async def reset(self) -> None:
        """Close both streams, so that the client's next write fails."""
        _forget_descriptors(0, 1)

    async def close(self) -> None:
        """Do nothing: the client sees the end when this process ends."""

    async def wait_closed(self) -> None:
        """Wait until our output has no reader; forever if the system cannot report it.

        A pipe or socket that only we write to becomes readable when its other end is closed.
        """
        out, our_input = os.fstat(1), os.fstat(0)
        is_pipe = stat.S_ISFIFO(out.st_mode) or stat.S_ISSOCK(out.st_mode)
        if not is_pipe or (out.st_dev, out.st_ino) == (our_input.st_dev, our_input.st_ino):
            await anyio.sleep_forever()
        await _wait_ready(anyio.wait_readable, 1)


class ProcessStreams:
    """The server on the pipes of its process."""

    def __init__(self, process: Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process has no pipes")
        self._in, self._out = process.stdin, process.stdout
        self._cutter = Cutter()

    async def receive(self) -> list[Piece]:
        """Return lines of the server, an empty list at the end."""
        return await read_lines(self._read, self._cutter)

    async def _read(self) -> bytes:
        try:
            return await self._out.receive(_CHUNK)
        except GONE:
            return b""

    async def send(self, frames: list[Frame]) -> None:
        """Write to the server. Raises `TargetGone` if it closed its input."""
        try:
            await self._in.send(encode_frames(frames))
        except GONE as error:
            raise TargetGone("the server closed its input") from error

    async def close(self) -> None:
        """Close the server's input."""
        try:
            await self._in.aclose()
        except GONE:
            return


async def read_lines(read: Callable[[], Awaitable[bytes]], cutter: Cutter) -> list[Piece]:
    """Return the next lines; at the end a last line without line end, then an empty list."""
    while chunk := await read():
        if pieces := cutter.feed(chunk):
            return pieces
    return cutter.end()


async def write_all(descriptor: int, data: bytes) -> None:
    """Write all data to one of our descriptors. Raises `TargetGone` if nobody reads it."""
    view = memoryview(data)
    while view:
        await _wait_ready(anyio.wait_writable, descriptor)
        try:
            written = os.write(descriptor, view[:_ATOMIC])
        except OSError as error:
            raise TargetGone("the client reads no more") from error
        view = view[written:]


def _forget_descriptors(*descriptors: int) -> None:
    """Put /dev/null in the place of descriptors, so that no file opened later gets their number."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


async def _wait_ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:
        # A regular file can always be read and written.
        await anyio.lowlevel.checkpoint()
