"""Connections to an address, on this machine only.

A Unix socket carries JSON Lines in both directions, so our close only ends the sending direction.
"""

import contextlib
import ipaddress
from typing import Protocol
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketStream

from harness.client.transport.base import Transport
from harness.client.transport.jsonl import LineSplitter
from harness.client.transport.resets import reset_socket
from harness.client.transport.streams import LineTransport
from harness.client.transport.websocket import open_websocket
from harness.errors import TargetGone, UsageError
from harness.trace.frame import MAX_FRAME_BYTES


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

    async def reset(self) -> None:
        """Break the connection off, so that the server's next read or write may fail."""
        self._closed = True
        await reset_socket(self._stream)


async def open_unix(path: str, *, splitter: LineSplitter | None = None) -> SocketLineTransport:
    """Connect to a socket in the file system. Raises `OSError` if nothing listens."""
    return SocketLineTransport(await anyio.connect_unix(path), splitter)


_EXPECTED = "expected ws://127.0.0.1:PORT, unix:PATH or ws+unix:PATH"
_WS_UNIX_PREFIX = "ws+unix:"


class Connection(Transport, Protocol):
    """A transport over a socket, which can be closed at any time."""

    async def release(self) -> None:
        """Close the socket in both directions. Idempotent."""
        ...

    async def reset(self) -> None:
        """Break the connection off; over TCP the server gets a RST."""
        ...


async def connect(address: str, *, limit: int = MAX_FRAME_BYTES) -> Connection:
    """Connect to an address; a message may have `limit` bytes.

    Raises `UsageError` for an invalid address, `OSError` if nothing listens there, and
    `websocket.HandshakeFailed` if the server does not speak WebSocket. There is no time limit:
    the caller sets one.
    """
    check_address(address)
    if address.startswith(_WS_UNIX_PREFIX):
        socket = await anyio.connect_unix(unix_path(address))
        return await open_websocket(socket, "ws://localhost/", limit=limit)
    if address.startswith("unix:"):
        return await open_unix(unix_path(address), splitter=LineSplitter(limit))
    parts = urlsplit(address)
    stream = await anyio.connect_tcp(parts.hostname or "", parts.port or 0)
    return await open_websocket(stream, address, limit=limit)


def check_address(address: str, *, listen: bool = False) -> None:
    """Raise `UsageError` for an invalid address.

    With `listen` it is an address to listen on, where port 0 means any free port.
    """
    if address.startswith(("unix:", _WS_UNIX_PREFIX)):
        if not unix_path(address):
            raise UsageError(f"{address!r} names no path; {_EXPECTED}")
        return
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        port_fits = parts.port is not None if listen else bool(parts.port)
    except ValueError as error:
        raise UsageError(f"{address!r} is no address ({error}); {_EXPECTED}") from error
    if parts.scheme != "ws" or not port_fits or parts.username is not None or parts.fragment:
        raise UsageError(f"{address!r} is no address; {_EXPECTED}")
    if not _is_loopback(host):
        raise UsageError(f"{address!r} is not on this machine: {host!r}; {_EXPECTED}")


def unix_path(address: str) -> str:
    """Return the path of a `unix:PATH` address, which may also be written `unix://PATH`."""
    rest = address.removeprefix("ws+").removeprefix("unix:")
    return rest.removeprefix("//")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
