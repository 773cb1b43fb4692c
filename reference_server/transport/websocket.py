"""Server side of a WebSocket over any connected socket; each message is a text frame (RFC 6455).

A library implements the protocol, used without its I/O, so that a batch of messages is one write
and TCP and Unix sockets are the same. `handshake` decides who may connect. Compression is never
accepted: a few bytes could become gigabytes.
"""

from dataclasses import dataclass, field

import anyio
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

from reference_server.transport.base import Incoming, PeerGone, Unusable
from reference_server.transport.descriptors import Descriptors
from reference_server.transport.lines import LINE_LIMIT

HARD_LIMIT = 2 * LINE_LIMIT
"""Bytes above which a message ends the connection (close code 1009): it is held in memory whole.

A message between `LINE_LIMIT` and this gets an error, as over other transports.
"""
PINGS_AT_ONCE = 1000
"""Unread answers to pings at which nothing is read until the client reads them."""
CLOSING_TIME = 1.0
"""Seconds that the client has to answer the server's close frame."""


@dataclass(slots=True)
class _Assembly:
    """The frames of one message; bytes over the limit are counted, not kept."""

    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    binary: bool = False

    def add(self, frame: Frame) -> Incoming | None:
        """Add a frame; return the message if it is complete and not blank, else None."""
        if frame.opcode is not Opcode.CONT:
            self.binary = frame.opcode is Opcode.BINARY
        self.size += len(frame.data)
        if self.size <= LINE_LIMIT and not self.binary:
            self.data += frame.data
        else:
            self.data.clear()
        if not frame.fin:
            return None
        message, size, binary = bytes(self.data), self.size, self.binary
        self.data, self.size = bytearray(), 0
        if binary:
            return Unusable("a message is a text frame, and this was a binary one")
        if size > LINE_LIMIT:
            return Unusable(f"the message is longer than {LINE_LIMIT} bytes")
        return message if message.strip() else None


class WebSocketTransport:
    """Messages over a WebSocket whose opening handshake is done."""

    def __init__(self, stream: Descriptors, protocol: ServerProtocol, path: str = "/") -> None:
        self.path = path
        """The path of the client's request, as it was sent."""
        self._stream = stream
        self._protocol = protocol
        self._assembly = _Assembly()
        self._closed = anyio.Event()
        self._writing = anyio.Lock()
        self._unread_pongs = 0

    @property
    def amount_read(self) -> int:
        """Bytes written so far."""
        return self._stream.amount_read

    async def receive(self) -> list[Incoming]:
        """Return the next messages; an empty list when the client has closed."""
        messages = self._messages()
        while not messages and not self._closed.is_set():
            data = await self._stream.read()
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
                self._closed.set()
            messages = self._messages()
            await self._answer()
        return messages

    def _messages(self) -> list[Incoming]:
        messages: list[Incoming] = []
        for event in self._protocol.events_received():
            if not isinstance(event, Frame):
                continue
            if event.opcode is Opcode.PING:
                self._unread_pongs += 1
            elif event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                message = self._assembly.add(event)
                if message is not None:
                    messages.append(message)
                if isinstance(message, bytes) and not _is_text(message):
                    # RFC 6455, 8.1. The message is still passed on, to those who judge the client.
                    self._protocol.fail(CloseCode.INVALID_DATA, "a text frame that is no UTF-8")
                    break
        if self._protocol.state is not State.OPEN:
            # Closed by the client, or by us after data that is not WebSocket.
            self._closed.set()
        return messages

    async def wait_for_end(self) -> None:
        """Wait until the client has closed; messages that it sent before may be unread."""
        async with anyio.create_task_group() as either:

            async def hang_up() -> None:
                await self._stream.wait_for_end()
                either.cancel_scope.cancel()

            either.start_soon(hang_up)
            await self._closed.wait()
            either.cancel_scope.cancel()

    async def send(self, messages: list[bytes]) -> None:
        """Write each message as a text frame, all in as few system calls as possible."""
        async with self._writing:
            if self._protocol.state is not State.OPEN:
                raise PeerGone
            # Frames are built here: the library takes more than twice as long, for each client.
            waiting = self._protocol.data_to_send()
            for message in messages:
                waiting += (_head_of_text(len(message)), message)
            self._unread_pongs = 0
            await self._stream.write(b"".join(waiting))
            await self._flush()

    async def close(self, code: int, reason: str) -> None:
        """Send a close frame and wait for the client's, at most `CLOSING_TIME`.

        The caller closes the socket. `reason` has at most 123 bytes.
        """
        if self._stream.midway:
            return
        with anyio.move_on_after(CLOSING_TIME):
            try:
                async with self._writing:
                    if self._protocol.state is State.OPEN:
                        self._protocol.send_close(code, reason)
                    await self._flush()
                while self._protocol.close_rcvd is None:
                    data = await self._stream.read()
                    if not data:
                        return
                    self._protocol.receive_data(data)
            except PeerGone:
                return

    async def _flush(self) -> None:
        """Write all waiting data, including later additions; `_writing` is held."""
        while waiting := self._protocol.data_to_send():
            self._unread_pongs = 0
            await self._stream.write(b"".join(waiting))

    async def _answer(self) -> None:
        """Write pongs and the answer to a close frame, or leave that to the current writer."""
        if self._writing.locked() and self._unread_pongs < PINGS_AT_ONCE:
            return
        async with self._writing:
            try:
                await self._flush()
            except PeerGone:
                self._closed.set()


def _head_of_text(size: int) -> bytes:
    """Return the header of an unmasked text frame that is a whole message (RFC 6455, 5.2)."""
    if size < 126:
        return bytes((0x81, size))
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")


def _is_text(message: bytes) -> bool:
    try:
        message.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
