"""JSON Lines on a pair of file descriptors: standard input and output, or a connected socket.

Standard output of the rest of the process becomes standard error, so that output of a library or a
child process never mixes with the messages.
"""

import os

from reference_server.transport.base import Incoming
from reference_server.transport.descriptors import Descriptors
from reference_server.transport.lines import LineSplitter


class StdioTransport:
    """Transport of lines over descriptors; `take_over` makes one for standard input and output."""

    def __init__(self, stream: Descriptors) -> None:
        self._stream = stream
        self._splitter = LineSplitter()
        self._at_end = False

    @classmethod
    def take_over(cls) -> "StdioTransport":
        """Return a transport on descriptors 0 and 1; descriptor 1 becomes standard error."""
        output = os.dup(1)
        os.dup2(2, 1)
        return cls(Descriptors(0, output))

    @property
    def amount_read(self) -> int:
        """Bytes written so far."""
        return self._stream.amount_read

    async def receive(self) -> list[Incoming]:
        """Return the next lines; an empty list at the end of the input."""
        while not self._at_end:
            data = await self._stream.read()
            if data:
                lines = self._splitter.feed(data)
            else:
                self._at_end = True
                lines = self._splitter.end()
            if lines:
                return lines
        return []

    async def wait_for_end(self) -> None:
        """Wait until nobody can write to the input any more, or it was read to its end."""
        await self._stream.wait_for_end()

    async def send(self, messages: list[bytes]) -> None:
        """Write the messages as lines, in as few system calls as the reader's pace allows."""
        await self._stream.write(b"\n".join(messages) + b"\n")
