"""JSON Lines on standard input and output.

Here live the two file descriptors. The rest of the process loses standard output: what a library or
a child process prints goes to standard error, never among the messages.
"""

import os
import stat

import anyio
from anyio import to_thread

from reference_server.transport.base import Incoming, PeerGone
from reference_server.transport.hangup import no_more_to_come
from reference_server.transport.lines import LineSplitter

READ_SIZE = 1 << 16


def _is_pipe_like(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class StdioTransport:
    """The transport over a pair of file descriptors; use `take_over` for the process's own."""

    def __init__(self, input_fd: int, output_fd: int) -> None:
        self._input = input_fd
        self._output = output_fd
        self._splitter = LineSplitter()
        self._ended = anyio.Event()
        self.taken = 0
        self._input_waits = not stat.S_ISREG(os.fstat(input_fd).st_mode)
        if _is_pipe_like(output_fd):
            # A reader that stops must stall this connection's writer only, never the event loop.
            os.set_blocking(output_fd, False)

    @classmethod
    def take_over(cls) -> "StdioTransport":
        """Claim descriptors 0 and 1, and point 1 at standard error for everybody else."""
        output = os.dup(1)
        os.dup2(2, 1)
        return cls(0, output)

    async def receive(self) -> list[Incoming]:
        """Give the next lines; an empty list at the end of the input."""
        while not self._ended.is_set():
            data = await self._read()
            if data:
                lines = self._splitter.feed(data)
            else:
                self._ended.set()
                lines = self._splitter.end()
            if lines:
                return lines
        return []

    async def _read(self) -> bytes:
        try:
            if self._input_waits:
                await anyio.wait_readable(self._input)
                return os.read(self._input, READ_SIZE)
        except BlockingIOError:
            return await self._read()
        except PermissionError:
            # The event loop cannot wait for such a descriptor: a device that is always ready.
            self._input_waits = False
        except OSError:
            return b""
        return await to_thread.run_sync(os.read, self._input, READ_SIZE, abandon_on_cancel=True)

    async def ended(self) -> None:
        """Wait until nobody can write to the input any more, or it was read to its end."""
        try:
            await no_more_to_come(self._input)
        except OSError:
            # A file, or a device that cannot be watched: only reading shows its end.
            await self._ended.wait()

    async def send(self, messages: list[bytes]) -> None:
        """Write the messages as lines, in as few system calls as the reader's pace allows."""
        rest = memoryview(b"\n".join(messages) + b"\n")
        while rest:
            try:
                written = os.write(self._output, rest)
                self.taken += written
                rest = rest[written:]
            except BlockingIOError:
                await anyio.wait_writable(self._output)
            except OSError as error:
                raise PeerGone from error
