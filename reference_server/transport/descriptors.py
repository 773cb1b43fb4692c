"""Bytes over file descriptors: pipes, terminals, files, sockets.

A reader that stops must stall this writer only, never the event loop. A closed other end is
detected without reading: data read for this alone would have to be kept.
"""

import os
import select
import stat
import sys

import anyio
from anyio import to_thread

from reference_server.transport.base import PeerGone
from reference_server.transport.readiness import wait_readable

if sys.platform == "linux":

    async def no_more_to_come(descriptor: int) -> None:
        """Wait until every writer has closed it. Raises OSError for a kind that cannot be watched.

        An epoll that watches only for the hang-up becomes readable when it happens.
        """
        with select.epoll() as hangups:
            # EPOLLHUP (of pipes) is always reported; EPOLLRDHUP is a socket's closed half.
            hangups.register(descriptor, select.EPOLLRDHUP)
            await wait_readable(hangups.fileno())

else:

    async def no_more_to_come(descriptor: int) -> None:
        """Wait until every writer has closed it. Raises OSError for a kind that cannot be watched.

        A separate kqueue reports each change once (`KQ_EV_CLEAR`), and the end is one of them.
        """
        if not hasattr(select, "kqueue"):
            raise OSError("this system has no kqueue")
        with select.kqueue() as news:
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            wanted = select.kevent(descriptor, select.KQ_FILTER_READ, flags)
            found = news.control([wanted], 1, 0)
            while not any(one.flags & select.KQ_EV_EOF for one in found):
                await wait_readable(news.fileno())
                found = news.control(None, 1, 0)


READ_SIZE = 1 << 16


def _is_pipe_like(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class Descriptors:
    """A byte stream over an input and an output file descriptor, which may be the same.

    At most one task reads and one task writes at a time.
    """

    def __init__(self, input_fd: int, output_fd: int) -> None:
        self._input = input_fd
        self._output = output_fd
        self._ended = anyio.Event()
        self._input_waits = not stat.S_ISREG(os.fstat(input_fd).st_mode)
        self.amount_read = 0
        """Bytes written so far."""
        self.midway = False
        """True during a write and after a cancelled one: other output would split the message."""
        if _is_pipe_like(output_fd):
            os.set_blocking(output_fd, False)

    async def read(self) -> bytes:
        """Return the next bytes; b"" at the end of the input."""
        data = b"" if self._ended.is_set() else await self._read()
        if not data:
            self._ended.set()
        return data

    async def _read(self) -> bytes:
        try:
            if self._input_waits:
                await wait_readable(self._input)
                return os.read(self._input, READ_SIZE)
        except BlockingIOError:
            return await self._read()
        except PermissionError:
            # The event loop cannot wait for a device that is always ready.
            self._input_waits = False
        except OSError:
            return b""
        return await to_thread.run_sync(os.read, self._input, READ_SIZE, abandon_on_cancel=True)

    async def wait_for_end(self) -> None:
        """Wait until nobody can write to the input any more, or it was read to its end."""
        try:
            await no_more_to_come(self._input)
        except OSError:
            # A file, or a device that cannot be watched: only reading shows its end.
            await self._ended.wait()

    async def write(self, data: bytes) -> None:
        """Write all of it, in as few system calls as the reader's pace allows. Raises PeerGone."""
        rest = memoryview(data)
        self.midway = True
        while rest:
            try:
                written = os.write(self._output, rest)
                self.amount_read += written
                rest = rest[written:]
            except BlockingIOError:
                await anyio.wait_writable(self._output)
            except OSError as error:
                raise PeerGone from error
        self.midway = False
