"""The interface of a transport.

`reference_server.connection` is written against it; every transport must pass the same tests.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import anyio


class Oversized(NamedTuple):
    """Placeholder for a skipped message of more than `limit` bytes."""

    limit: int


class Unusable(NamedTuple):
    """Placeholder for a message that cannot be JSON; `words` say why."""

    words: str


Incoming = bytes | Oversized | Unusable


class Transport(Protocol):
    """A two-way stream of messages; one reader task and one writer task at a time."""

    @property
    def amount_read(self) -> int:
        """Return how much the peer has taken, in bytes or messages; it only grows."""
        ...

    async def receive(self) -> list[Incoming]:
        """Return the next messages, at least one; an empty list means the peer has ended."""
        ...

    async def wait_for_end(self) -> None:
        """Wait until the peer has closed its side; messages that it sent before may be unread."""
        ...

    async def send(self, messages: list[bytes]) -> None:
        """Write all messages, in order. Raises PeerGone if the peer no longer reads."""
        ...


Edge = Callable[[Transport], Transport]
"""Returns the transport for a connection: the given one, or one around it that speaks a dialect."""


def plain_edge(transport: Transport) -> Transport:
    """Return the transport as it is: its peer speaks as the specification says."""
    return transport


class PeerGone(Exception):
    """The other side no longer reads."""


class MemoryTransport:
    """A transport inside one process: two queues of messages."""

    def __init__(self) -> None:
        self._send_in, self._receive_in = anyio.create_memory_object_stream[Incoming](1000)
        self._send_out, self._receive_out = anyio.create_memory_object_stream[bytes](1000)
        self._ended = anyio.Event()
        self.amount_read = 0

    async def receive(self) -> list[Incoming]:
        """Return the peer's next message; an empty list after `end_input`."""
        try:
            return [await self._receive_in.receive()]
        except anyio.EndOfStream:
            return []

    async def wait_for_end(self) -> None:
        """Wait for `end_input`."""
        await self._ended.wait()

    async def send(self, messages: list[bytes]) -> None:
        """Pass the messages to the peer; waits while 1,000 are unread. Raises PeerGone."""
        try:
            for message in messages:
                await self._send_out.send(message)
                self.amount_read += 1
        except anyio.BrokenResourceError as error:
            raise PeerGone from error

    async def put(self, message: Incoming) -> None:
        """Send one message to the server, as the peer."""
        await self._send_in.send(message)

    async def take(self) -> bytes:
        """Return the server's next message, as the peer. Raises anyio.EndOfStream at its end."""
        return await self._receive_out.receive()

    def end_input(self) -> None:
        """Send no more messages, as the peer."""
        self._send_in.close()
        self._ended.set()

    def end_output(self) -> None:
        """Send no more messages, as the server."""
        self._send_out.close()

    def stop_reading(self) -> None:
        """Read nothing more, as the peer."""
        self._receive_out.close()

    def close(self) -> None:
        """Release all four ends."""
        for stream in (self._send_in, self._receive_in, self._send_out, self._receive_out):
            stream.close()
