"""Wire of a staged connection, on which messages are observed and faults may act.

`harness.play.client_tests` judges the messages.
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


class MessageObserver(Protocol):
    """An observer of the messages of a connection."""

    def add_client_message(self, raw: bytes) -> None:
        """Observe a message from the client."""
        ...

    def add_server_message(self, raw: bytes) -> None:
        """Observe a message to the client."""
        ...

    def add_problem(self, problem: str) -> None:
        """Report that the client sent something that is not a message."""
        ...

    def close(self) -> None:
        """Note that the client has left. Idempotent."""
        ...


class ObservedTransport:
    """Transport of a client that shows each message to `observer` and resets `active`.

    `first` are the messages already received.
    """

    def __init__(
        self,
        transport: Transport,
        first: Sequence[Incoming],
        observer: MessageObserver,
        active: "IdleTimer",
    ) -> None:
        self._transport = transport
        self._first = list(first)
        self._observer = observer
        self._active = active

    @property
    def amount_read(self) -> int:
        """Return how much the client has read so far."""
        return self._transport.amount_read

    async def receive(self) -> list[Incoming]:
        """Return the next messages."""
        messages, self._first = self._first, []
        messages = messages or await self._transport.receive()
        if not messages:
            self._observer.close()
        for message in messages:
            if isinstance(message, bytes):
                self._observer.add_client_message(message)
            elif isinstance(message, Oversized):
                self._observer.add_problem(
                    f"the client sent a line of more than {message.limit} bytes"
                )
            else:
                self._observer.add_problem(f"the client sent what is no message: {message.words}")
        self._active.reset()
        return messages

    async def wait_for_end(self) -> None:
        """Wait until the client has closed its side."""
        await self._transport.wait_for_end()
        self._observer.close()

    async def send(self, messages: list[bytes]) -> None:
        """Write all messages; they are observed first, since an answer may come at once."""
        for message in messages:
            self._observer.add_server_message(message)
        await self._transport.send(messages)
        self._active.reset()


class IdleTimer:
    """Timer of `seconds` without a message; with None it never fires."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._stirred = anyio.Event()

    def reset(self) -> None:
        """Note that a message passed."""
        stirred, self._stirred = self._stirred, anyio.Event()
        stirred.set()

    async def wait(self, then: Callable[[], None]) -> None:
        """Call `then` after `seconds` without a message; return at once if they are None."""
        while self._seconds is not None:
            with anyio.move_on_after(self._seconds) as silence:
                await self._stirred.wait()
            if silence.cancelled_caught:
                then()
                return


class ClientEnd:
    """Client's end of a wire with faults; oversized and unusable messages are not passed on."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def receive(self) -> list[bytes]:
        """Return the next messages; an empty list at the end."""
        while messages := await self._transport.receive():
            lines = [one for one in messages if not isinstance(one, Oversized | Unusable)]
            if lines:
                return lines
        return []

    async def send(self, messages: list[bytes]) -> None:
        """Write messages to the client. Raises TargetGone if it no longer reads."""
        try:
            await self._transport.send(messages)
        except PeerGone as error:
            raise TargetGone("the client is gone") from error

    async def close(self) -> None:
        """Do nothing: whoever opened the connection closes it."""


class ServerEnd:
    """Server's end of a wire with faults."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport

    async def receive(self) -> list[bytes]:
        """Return the server's next message in a list; an empty list at the end."""
        try:
            return [await self._transport.take()]
        except anyio.EndOfStream:
            return []

    async def send(self, messages: list[bytes]) -> None:
        """Pass messages to the server. Raises TargetGone if it has ended."""
        try:
            for message in messages:
                await self._transport.put(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise TargetGone("the server has ended") from error

    async def close(self) -> None:
        """End the client's input."""
        self._transport.end_input()
