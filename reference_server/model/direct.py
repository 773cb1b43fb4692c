"""Plain HTTP to a model, without a proxy, as for a server on this machine or its network.

`http_reading` parses answers. A client library would take a third of a short turn, and a fifth of
the time to the first one.
"""

import asyncio
import re
import socket
import time
from collections.abc import AsyncGenerator, Mapping
from typing import cast

from reference_server.model.answer import TransportError
from reference_server.model.http_reading import Body, Head, body_of, malformed_answer, read_head

KEEP_ALIVE_SECONDS = 30.0
"""Maximum idle seconds after which a connection may be used again."""
MAX_WAITING_BYTES = 1 << 18
"""Unread bytes above which nothing more is received."""
ATTEMPT_SECONDS = 0.25
"""Seconds after which the next address of a host is tried in parallel."""
_ADDRESS = re.compile(
    r"http://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?(/[\w./~-]*)?", re.A
)
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def is_direct(address: str) -> bool:
    """Return whether an address is plain HTTP without a login or characters to encode."""
    match = _ADDRESS.fullmatch(address)
    return match is not None and 0 < int(match[2] or 80) < 1 << 16


class DirectConnection:
    """A connection to one host, for one call at a time."""

    def __init__(self) -> None:
        self._wire: _Wire | None = None
        self._usable_until = 0.0

    @property
    def is_stale(self) -> bool:
        """Return whether the connection was open but cannot be used again."""
        if self._wire is None:
            return False
        return self._wire.is_stale or time.monotonic() > self._usable_until

    async def post(
        self, address: str, headers: Mapping[str, str], content: bytes
    ) -> "DirectAnswer":
        """Send a request; return the answer once its headers are read. Raises TransportError."""
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise ValueError(f"{address!r} is not plain HTTP")
        host, port, path = match[1], int(match[2] or 80), match[3] or "/"
        lines = [f"POST {path} HTTP/1.1", f"Host: {host}:{port}" if match[2] else f"Host: {host}"]
        for name, value in headers.items():
            if not _HEADER_VALUE.fullmatch(value):
                raise TransportError(f"LocalProtocolError: Illegal header value {value.encode()!r}")
            lines.append(f"{name}: {value}")
        lines.append(f"Content-Length: {len(content)}\r\n\r\n")
        wire = self._wire
        if self.is_stale:
            await self.aclose()
            wire = None
        if wire is None:
            wire = self._wire = await _connect(host.strip("[]"), port)
        try:
            await wire.write("\r\n".join(lines).encode() + content)
            return await self._answer(wire)
        except BaseException:
            await self.aclose()
            raise

    async def _answer(self, wire: "_Wire") -> "DirectAnswer":
        data = b""
        while True:
            head_and_rest = read_head(data)
            if head_and_rest is None:
                more = await wire.read()
                if not more:
                    raise malformed_answer("Server disconnected without sending a response.")
                data += more
                continue
            head, data = head_and_rest
            if head.status >= 200:
                return DirectAnswer(self, wire, head, body_of(head), data)
            if head.status == 101:
                raise malformed_answer("the server switched to another protocol")

    async def aclose(self) -> None:
        """Close the connection; the next call opens another."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def keep(self) -> None:
        """Let the next call use the connection, within KEEP_ALIVE_SECONDS."""
        self._usable_until = time.monotonic() + KEEP_ALIVE_SECONDS


class DirectAnswer:
    """Answer to one call."""

    def __init__(
        self, connection: DirectConnection, wire: "_Wire", head: Head, body: Body, received: bytes
    ) -> None:
        self.status = head.status
        self.headers = head.headers
        self._connection = connection
        self._wire = wire
        self._body = body
        self._rest = received
        self._keeps_open = head.keeps_open

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the pieces of the body as they arrive. Raises TransportError."""
        body, data = self._body, self._rest
        while True:
            if data and (piece := body.feed(data)):
                yield piece
            if body.is_whole:
                return
            data = await self._wire.read()
            if not data:
                self._keeps_open = False
                body.end()

    async def aclose(self) -> None:
        """Close the connection, unless the whole body was read and the server keeps it open."""
        body = self._body
        if self._keeps_open and body.is_whole and not body.excess:
            self._connection.keep()
        else:
            await self._connection.aclose()


class _Wire(asyncio.Protocol):
    """A socket with its received, unread data and its flow control."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._ended = False
        self._broken = False
        self._can_write = True
        self._waiter: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > MAX_WAITING_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._broken = exc is not None
        self._wake()

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._wake()

    @property
    def is_stale(self) -> bool:
        """Return whether the server has closed it, or sent data without a request."""
        return self._ended or bool(self._received)

    async def read(self) -> bytes:
        """Return received data, at least one byte; b"" at the end. Raises TransportError."""
        while not self._received:
            if self._broken:
                raise TransportError("ReadError")
            if self._ended:
                return b""
            await self._wait_for_change()
        data = bytes(self._received)
        self._received.clear()
        if len(data) > MAX_WAITING_BYTES and self._transport is not None and not self._ended:
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        """Send data, at the server's pace. Never raises: reading shows a closed connection."""
        assert self._transport is not None
        self._transport.write(data)
        while not (self._can_write or self._ended):
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def _connect(host: str, port: int) -> _Wire:
    loop = asyncio.get_running_loop()
    try:
        _, wire = await loop.create_connection(
            _Wire, host, port, happy_eyeballs_delay=ATTEMPT_SECONDS
        )
    except (socket.gaierror, UnicodeError) as error:
        raise TransportError(f"ConnectError: {error}") from error
    except OSError as error:
        raise TransportError("ConnectError: All connection attempts failed") from error
    return wire
