"""WebSocket, the client's side: each message is a text frame (RFC 6455), on loopback.

A library implements the protocol, and is used without its I/O: invalid UTF-8, half a message and a
binary frame must reach the recorder as they came, and a complete client would hide them.

Each line is a message: bytes up to a line end become one text frame, and bytes without a line end
become an unfinished frame.
"""

import contextlib

import anyio
from anyio.abc import ByteStream
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from harness.client.transport.jsonl import MAX_KEPT_BYTES_OF_LONG_LINE, Line, LineSplitter
from harness.client.transport.resets import reset_socket
from harness.errors import TargetError, TargetGone
from harness.trace.frame import MAX_FRAME_BYTES, Damage, DamageKind

_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)
_CHUNK_BYTES = 256 * 1024
# The head of a message over the limit is kept and the rest dropped. The library would have to hold
# all of a message first, so one that is this many times longer than the limit ends the connection.
_MAX_LIMIT_FACTOR = 4
# Codes of a normal close: done, going away, no code given.
_NORMAL_CLOSE_CODES = (1000, 1001, 1005)


class HandshakeFailed(TargetError):
    """Error for an answer that is not a WebSocket handshake; the text describes it."""


class _Assembly(LineSplitter):
    """Buffer that joins the frames of a message, with the size limit of a line."""

    def add(self, data: bytes, *, ends: bool) -> Line | None:
        """Add a frame; return the message if it is complete, None if not or if it is blank."""
        self._append(data)
        return self._take() if ends else None


class WebSocketTransport:
    """Messages over a WebSocket connection. Make it with `open_websocket`."""

    def __init__(self, stream: ByteStream, protocol: ClientProtocol, limit: int) -> None:
        self._stream = stream
        self._protocol = protocol
        self._limit = limit
        self._assembly = _Assembly(limit)
        self._ready: list[Line] = []
        self._binary = False
        self._half_sent = False
        self._ended = False
        self._write_lock = anyio.Lock()

    @property
    def partial(self) -> bytes:
        """Return the frames so far of a message that has not ended yet."""
        return self._assembly.partial

    @property
    def partial_size(self) -> int:
        """Return the number of bytes of the unfinished message, including those not kept."""
        return self._assembly.partial_size

    async def send(self, raw: bytes) -> None:
        """Write one message as a text frame."""
        await self.send_bytes(raw + b"\n")

    async def send_bytes(self, raw: bytes) -> None:
        """Write bytes as they are, valid text or not; each line end ends a message."""
        *messages, unfinished = raw.split(b"\n")
        async with self._write_lock:
            try:
                for piece in messages:
                    self._put(piece, ends=True)
                if unfinished:
                    self._put(unfinished, ends=False)
            except InvalidState as error:
                raise TargetGone("the connection is closed") from error
            await self._flush()

    async def receive(self) -> list[Line]:
        """Return the next messages. Raises `TargetGone` at the end of the connection."""
        while not self._ready and not self._ended:
            try:
                chunk = await self._stream.receive(_CHUNK_BYTES)
            except _GONE:
                self._protocol.receive_eof()
                self._end()
            else:
                self._protocol.receive_data(chunk)
            self._take_events()
            await self._answer()
        if self._ready:
            lines, self._ready = self._ready, []
            return lines
        await self.release()
        raise TargetGone("the server closed the connection")

    async def aclose(self) -> None:
        """Begin the closing handshake; later messages of the server can still be read."""
        async with self._write_lock:
            with contextlib.suppress(InvalidState, TargetGone):
                if self._protocol.state is State.OPEN:
                    self._protocol.send_close(1000)
                    await self._flush()

    async def release(self) -> None:
        """Close the socket in both directions at once."""
        self._ended = True
        await self._stream.aclose()

    async def reset(self) -> None:
        """Break the connection off without a closing handshake."""
        self._ended = True
        await reset_socket(self._stream)

    async def shake_hands(self) -> None:
        """Perform the opening handshake. Raises `HandshakeFailed` if the answer is not one."""
        self._protocol.send_request(self._protocol.connect())
        try:
            await self._flush()
            while self._protocol.state is State.CONNECTING:
                if self._protocol.handshake_exc is not None:
                    reason = " ".join(str(self._protocol.handshake_exc).split())
                    raise HandshakeFailed(f"it does not speak WebSocket: {reason}")
                self._protocol.receive_data(await self._stream.receive(_CHUNK_BYTES))
        except (*_GONE, TargetGone) as error:
            raise HandshakeFailed("it closed the connection before a WebSocket began") from error
        # Data that came together with the handshake: messages, or a ping to be answered.
        self._take_events()
        await self._answer()

    def _put(self, piece: bytes, *, ends: bool) -> None:
        if self._half_sent:
            self._protocol.send_continuation(piece, ends)
        else:
            self._protocol.send_text(piece, ends)
        self._half_sent = not ends

    async def _flush(self) -> None:
        """Write all pending data, also what is added meanwhile. The caller holds the lock."""
        while waiting := self._protocol.data_to_send():
            try:
                await self._stream.send(b"".join(waiting))
            except _GONE as error:
                raise TargetGone("the server closed its input") from error

    async def _answer(self) -> None:
        """Write pongs and the answer to a close; an active writer writes them instead."""
        if not self._write_lock.locked():
            async with self._write_lock:
                with contextlib.suppress(TargetGone):
                    await self._flush()

    def _take_events(self) -> None:
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._take_frame(event)
        failure = self._protocol.parser_exc
        if failure is not None and not self._ended and not isinstance(failure, EOFError):
            self._fail(failure)

    def _take_frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            self._end()
        elif frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            if frame.opcode is not Opcode.CONT:
                self._binary = frame.opcode is Opcode.BINARY
            line = self._assembly.add(bytes(frame.data), ends=frame.fin)
            if line is not None and self._binary and line.damage is None:
                words = f"a binary frame of {len(line.raw)} bytes, not a text frame"
                line = Line(line.raw, Damage(DamageKind.BINARY, words))
            if line is not None:
                self._ready.append(line)

    def _end(self) -> None:
        """Add the unfinished message, and the close code unless it is a normal one."""
        if self._ended:
            return
        self._ended = True
        rest = self._assembly.finish()
        if rest is not None:
            self._ready.append(rest)
        close = self._protocol.close_rcvd
        if close is not None and close.code not in _NORMAL_CLOSE_CODES:
            words = f"the server closed the connection: {close}"
            self._ready.append(Line(b"", Damage(DamageKind.CLOSED, words)))

    def _fail(self, failure: Exception) -> None:
        """End the connection: the data was not WebSocket, or a message was far too long."""
        if self._protocol.close_rcvd is not None:
            self._end()  # The server closed in the middle of a message.
            return
        self._ended = True
        head = self._assembly.partial[:MAX_KEPT_BYTES_OF_LONG_LINE]
        if self._protocol.close_sent is not None and self._protocol.close_sent.code == 1009:
            max_bytes = _MAX_LIMIT_FACTOR * self._limit
            words = f"a line of more than {max_bytes} bytes; the limit is {self._limit}"
            damage = Damage(DamageKind.TOO_LONG, words)
        else:
            words = f"the server broke the WebSocket protocol: {failure}"
            damage = Damage(DamageKind.BROKEN, words)
        self._ready.append(Line(head, damage))


async def open_websocket(
    stream: ByteStream, uri: str, *, limit: int = MAX_FRAME_BYTES
) -> WebSocketTransport:
    """Return a transport after the handshake on a connected stream, without compression.

    `uri` is that of the server; a message may have `limit` bytes. There is no time limit: the
    caller sets one. Raises `HandshakeFailed`; whatever fails, the stream is closed.
    """
    protocol = ClientProtocol(parse_uri(uri), max_size=_MAX_LIMIT_FACTOR * limit)
    transport = WebSocketTransport(stream, protocol, limit)
    try:
        await transport.shake_hands()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await stream.aclose()
        raise
    return transport
