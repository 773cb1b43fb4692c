"""The interface of a transport.

`reference_server.connection` is written against it; every transport must pass the same tests.
"""

from typing import NamedTuple, Protocol

import anyio


class Oversized(NamedTuple):
    """Stands for a message that was skipped: it has more than `limit` bytes."""

    limit: int


class Unusable(NamedTuple):
    """Stands for a message that no line of JSON can be; `words` say why."""

    words: str


Incoming = bytes | Oversized | Unusable


class Transport(Protocol):
    """A two-way stream of messages; one reader task and one writer task at a time."""

    @property
    def taken(self) -> int:
        """Return how much the peer has read, in a unit of the transport; it never shrinks."""
        ...

    async def receive(self) -> list[Incoming]:
        """Return the next messages, at least one; an empty list means the peer has ended."""
        ...

    async def ended(self) -> None:
        """Wait until the peer has closed its side; messages that it sent before may be unread."""
        ...

    async def send(self, messages: list[bytes]) -> None:
        """Write all messages, in order. Raises `PeerGone` when nobody reads any more."""
        ...


class PeerGone(Exception):
    """The other side no longer reads."""


class MemoryTransport:
    """A transport inside one process: two queues of messages."""

    def __init__(self) -> None:
        self._send_in, self._receive_in = anyio.create_memory_object_stream[Incoming](1000)
        self._send_out, self._receive_out = anyio.create_memory_object_stream[bytes](1000)
        self._ended = anyio.Event()
        self.taken = 0

    async def receive(self) -> list[Incoming]:
        """Return the next message of the peer."""
        try:
            return [await self._receive_in.receive()]
        except anyio.EndOfStream:
            return []

    async def ended(self) -> None:
        """Wait for `end_input`."""
        await self._ended.wait()

    async def send(self, messages: list[bytes]) -> None:
        """Hand the messages to the peer; waits while 1,000 of them are unread."""
        try:
            for message in messages:
                await self._send_out.send(message)
                self.taken += 1
        except anyio.BrokenResourceError as error:
            raise PeerGone from error

    async def put(self, message: Incoming) -> None:
        """Peer's side: send one message to the server."""
        await self._send_in.send(message)

    async def take(self) -> bytes:
        """Peer's side: the next message of the server. Raises anyio.EndOfStream at its end."""
        return await self._receive_out.receive()

    def end_input(self) -> None:
        """Peer's side: no more messages will come."""
        self._send_in.close()
        self._ended.set()

    def end_output(self) -> None:
        """Server's side: no more messages will come."""
        self._send_out.close()

    def stop_reading(self) -> None:
        """Peer's side: read nothing more."""
        self._receive_out.close()

    def close(self) -> None:
        """Release all four ends."""
        for stream in (self._send_in, self._receive_in, self._send_out, self._receive_out):
            stream.close()
