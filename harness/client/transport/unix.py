"""JSON Lines over a socket: one connection to a server that listens on a path.

A socket carries both directions, so our close only ends the sending direction.
"""

import contextlib

import anyio
from anyio.abc import SocketStream

from harness.client.transport.jsonl import LineSplitter
from harness.client.transport.streams import LineTransport
from harness.errors import TargetGone


class SocketLineTransport(LineTransport):
    """Lines over a connected socket. `release` closes the socket at any time."""

    def __init__(self, stream: SocketStream, splitter: LineSplitter | None = None) -> None:
        super().__init__(stream, stream, splitter)
        self._stream = stream
        self._closed = False

    async def send_bytes(self, raw: bytes) -> None:
        """Write bytes as they are; two writers never interleave."""
        if self._closed:
            raise TargetGone("our side is closed")
        await super().send_bytes(raw)

    async def aclose(self) -> None:
        """Close the sending direction; later messages of the server can still be read."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(OSError, anyio.ClosedResourceError):
                await self._stream.send_eof()

    async def release(self) -> None:
        """Close the socket in both directions."""
        self._closed = True
        await self._stream.aclose()


async def open_unix(path: str, *, splitter: LineSplitter | None = None) -> SocketLineTransport:
    """Connect to a socket in the file system. Raises `OSError` if nothing listens."""
    return SocketLineTransport(await anyio.connect_unix(path), splitter)
