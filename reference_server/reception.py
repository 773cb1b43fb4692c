"""A server that listens: its connections, from being accepted to being closed.

Here live the loop that accepts, the limit on connections, and with which words a client is let go.
Opening the socket lives in `transport.listener`, who may connect in `transport.handshake`, what a
connection does in `connection`.
"""

import logging
import socket
from http import HTTPStatus

import anyio
from anyio.abc import TaskGroup

from reference_server.connection import Connection
from reference_server.server import Server
from reference_server.transport.addresses import TcpAddress
from reference_server.transport.descriptors import Descriptors
from reference_server.transport.handshake import Admission, admit, turn_away
from reference_server.transport.listener import Listener
from reference_server.transport.stdio import StdioTransport

_log = logging.getLogger(__name__)

CONNECTIONS = 256
"""Connections at once, those whose handshake is under way included."""
_DONE = (1000, "")
_GOING_AWAY = (1001, "the server ends")
_TRY_AGAIN_LATER = (1013, "too slow: connect again, and thread/resume shows what was missed")
"""Codes and reasons of a close (RFC 6455, and IANA's registry of WebSocket close codes)."""


class Reception:
    """Takes the connections of one listener."""

    def __init__(self, server: Server, listener: Listener, admission: Admission) -> None:
        self._server = server
        self._listener = listener
        self._admission = admission
        self._count = 0
        address = listener.address
        self._is_websocket = isinstance(address, TcpAddress) or address.websocket

    async def run(self) -> None:
        """Serve until the server is told to stop and every client has been told."""
        async with anyio.create_task_group() as connections:
            async with anyio.create_task_group() as accepting:
                accepting.start_soon(self._accept, connections)
                await self._server.told_to_stop.wait()
                accepting.cancel_scope.cancel()
            self._listener.close()

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
        if self._count > CONNECTIONS:
            _log.warning("a connection was refused: there are %d", CONNECTIONS)
            if self._is_websocket:
                words = f"there are {CONNECTIONS} connections, and no more are taken"
                await turn_away(stream, HTTPStatus.SERVICE_UNAVAILABLE, words)
            return
        if not self._is_websocket:
            await self._server.serve(Connection(StdioTransport(stream), may_give_up=True))
            return
        transport = await admit(stream, self._admission)
        if transport is not None:
            connection = Connection(transport, may_give_up=True)
            await self._server.serve(connection)
            await transport.close(*self._farewell(connection))

    def _farewell(self, connection: Connection) -> tuple[int, str]:
        if connection.outbox.given_up.is_set():
            return _TRY_AGAIN_LATER
        return _GOING_AWAY if self._server.told_to_stop.is_set() else _DONE
