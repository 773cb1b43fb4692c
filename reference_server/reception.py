"""Connections of a listening server, from accept to close.

`transport.listener` opens the socket, `transport.handshake` decides on admission, `connection`
reads and writes the messages.
"""

import contextlib
import logging
import socket
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from reference_server.envelope import encode_error
from reference_server.outbox import OVERLOADED
from reference_server.transport.addresses import TcpAddress
from reference_server.transport.base import Edge, PeerGone, Transport, plain_edge
from reference_server.transport.descriptors import Descriptors
from reference_server.transport.handshake import HANDSHAKE_TIME, Admission, admit
from reference_server.transport.listener import Listener
from reference_server.transport.stdio import StdioTransport
from reference_server.transport.websocket import WebSocketTransport

_log = logging.getLogger(__name__)

CONNECTIONS = 256
"""Connections at once by default, those whose handshake is under way included."""
_DONE = (1000, "")
_GOING_AWAY = (1001, "the server ends")
_TRY_AGAIN_LATER = (1013, "too slow: connect again, and thread/resume shows what was missed")
"""Codes and reasons of a close (RFC 6455, and IANA's registry of WebSocket close codes)."""


class Host(Protocol):
    """A server of the admitted clients."""

    @property
    def stop_requested(self) -> anyio.Event:
        """Set when no more clients are accepted and all connections are to end."""
        ...

    async def host(self, transport: Transport, path: str, /) -> bool:
        """Serve one client until it leaves; return whether it was dropped as too slow.

        `path` is the request path of its WebSocket, "" without one.
        """
        ...


class Reception:
    """Accept loop of one listener, and the life of its connections."""

    def __init__(
        self, server: Host, listener: Listener, admission: Admission, edge: Edge = plain_edge
    ) -> None:
        self._server = server
        self._edge = edge
        self._listener = listener
        self._admission = admission
        self._count = 0
        self._admitting: set[anyio.CancelScope] = set()
        address = listener.address
        self._is_websocket = isinstance(address, TcpAddress) or address.websocket

    async def run(self) -> None:
        """Serve until the server stops and every connection has ended."""
        async with anyio.create_task_group() as connections:
            async with anyio.create_task_group() as accepting:
                accepting.start_soon(self._accept, connections)
                await self._server.stop_requested.wait()
                accepting.cancel_scope.cancel()
            self._listener.close()
            for handshake in list(self._admitting):
                handshake.cancel()

    async def _accept(self, connections: TaskGroup) -> None:
        while True:
            connection = await self._listener.accept()
            connections.start_soon(self._take, connection)

    async def _take(self, socket: socket.socket) -> None:
        self._count += 1
        try:
            with socket:
                await self._serve(Descriptors(socket.fileno(), socket.fileno()))
        except Exception:
            # One connection must not end the others.
            _log.exception("a connection failed")
        finally:
            self._count -= 1

    async def _serve(self, stream: Descriptors) -> None:
        overload = self._overload_error()
        if self._is_websocket:
            transport = await self._admit(stream, overload)
            if transport is not None:
                too_slow = await self._server.host(self._edge(transport), transport.path)
                await transport.close(*self._farewell(too_slow=too_slow))
        elif overload is not None:
            with anyio.move_on_after(HANDSHAKE_TIME), contextlib.suppress(PeerGone):
                await StdioTransport(stream).send([encode_error(None, OVERLOADED, overload)])
        else:
            await self._server.host(self._edge(StdioTransport(stream)), "")

    def _overload_error(self) -> str | None:
        limit = self._admission.max_connections or CONNECTIONS
        if self._count <= limit:
            return None
        words = f"there are {limit} connections, and no more are taken"
        if self._count == limit + 1:
            # Logged for the first one only: there may be thousands.
            _log.warning("a connection was refused: %s", words)
        return words

    async def _admit(self, stream: Descriptors, overload: str | None) -> WebSocketTransport | None:
        with anyio.CancelScope() as handshake:
            self._admitting.add(handshake)
            try:
                return await admit(stream, self._admission, overload)
            finally:
                self._admitting.discard(handshake)
        return None

    def _farewell(self, *, too_slow: bool) -> tuple[int, str]:
        if too_slow:
            return _TRY_AGAIN_LATER
        return _GOING_AWAY if self._server.stop_requested.is_set() else _DONE
