"""The wire of a staged connection: what passes is shown, and faults may stand between.

What passes is judged elsewhere (`harness.play.client_tests`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import anyio

from harness.errors import TargetGone
from reference_server.transport.base import (
    Incoming,
    MemoryTransport,
    Oversized,
    PeerGone,
    Transport,
    Unusable,
)


class Witness(Protocol):
    """An observer of what passes."""

    def came(self, raw: bytes) -> None:
        """The client has sent a message."""
        ...

    def went(self, raw: bytes) -> None:
        """A message is sent to the client."""
        ...

    def note(self, problem: str) -> None:
        """The client has sent what is no message."""
        ...


class ShownTransport:
    """The transport of a client, all of whose messages are shown; `active` is told of each."""

    def __init__(
        self, transport: Transport, first: Sequence[Incoming], witness: Witness, active: "Quiet"
    ) -> None:
        self._transport = transport
        self._first = list(first)
        self._witness = witness
        self._active = active

    @property
    def taken(self) -> int:
        """Return how much the client has read so far."""
        return self._transport.taken

    async def receive(self) -> list[Incoming]:
        """Return the next messages."""
        messages, self._first = self._first, []
        messages = messages or await self._transport.receive()
        for message in messages:
            if isinstance(message, bytes):
                self._witness.came(message)
            elif isinstance(message, Oversized):
                self._witness.note(f"the client sent a line of more than {message.limit} bytes")
            else:
                self._witness.note(f"the client sent what is no message: {message.words}")
        self._active.stir()
        return messages

    async def ended(self) -> None:
        """Wait until the client has closed its side."""
        await self._transport.ended()

    async def send(self, messages: list[bytes]) -> None:
        """Write all messages; they are shown before, since an answer may come at once."""
        for message in messages:
            self._witness.went(message)
        await self._transport.send(messages)
        self._active.stir()


class Quiet:
    """Ends a wait when nothing passes for `seconds`; None never does."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._stirred = anyio.Event()

    def stir(self) -> None:
        """Something passes."""
        stirred, self._stirred = self._stirred, anyio.Event()
        stirred.set()

    async def wait(self, then: Callable[[], None]) -> None:
        """Call `then` once it was quiet for so long."""
        while self._seconds is not None:
            with anyio.move_on_after(self._seconds) as silence:
                await self._stirred.wait()
            if silence.cancelled_caught:
                then()
                return


class ClientEnd:
    """The client's end of a wire with faults. What is no line of JSON is not passed on."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def receive(self) -> list[bytes]:
        """Some messages, none at the end."""
        while messages := await self._transport.receive():
            passed = [one for one in messages if not isinstance(one, Oversized | Unusable)]
            if passed:
                return passed
        return []

    async def send(self, messages: list[bytes]) -> None:
        """Write messages. Raises TargetGone."""
        try:
            await self._transport.send(messages)
        except PeerGone as error:
            raise TargetGone("the client is gone") from error

    async def close(self) -> None:
        """The connection is closed by who has opened it."""


class ServerEnd:
    """The server's end of a wire with faults."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport

    async def receive(self) -> list[bytes]:
        """Some messages, none at the end."""
        try:
            return [await self._transport.take()]
        except anyio.EndOfStream:
            return []

    async def send(self, messages: list[bytes]) -> None:
        """Pass messages on. Raises TargetGone."""
        try:
            for message in messages:
                await self._transport.put(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise TargetGone("the server has ended") from error

    async def close(self) -> None:
        """The client has ended its input."""
        self._transport.end_input()
