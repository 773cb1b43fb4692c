"""Clients, over real sockets, of a listening server in this process."""

import json
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio
import websockets
from model_side import ModelSide, Refused, Reply
from session_peer import Peer, config

from reference_server.cli.edge import edge_of_process, told_to_all_by_process
from reference_server.config.home import Home
from reference_server.reception import Reception
from reference_server.server import Server, running_server
from reference_server.transport.addresses import TcpAddress, UnixAddress
from reference_server.transport.handshake import Admission
from reference_server.transport.listener import Listener, open_listener

KINDS = ["ws", "unix", "ws+unix"]
WEBSOCKETS = ["ws", "ws+unix"]


class Line(Protocol):
    """The transport that `Peer` needs."""

    async def put(self, message: bytes) -> None: ...
    async def take(self) -> bytes: ...
    def end_input(self) -> None: ...
    def end_output(self) -> None: ...
    def close(self) -> None: ...


class OverWebSocket:
    """A transport over a WebSocket of the library websockets."""

    def __init__(self, connection: websockets.ClientConnection) -> None:
        self.connection = connection

    async def put(self, message: bytes) -> None:
        await self.connection.send(message.decode())

    async def take(self) -> bytes:
        try:
            return (await self.connection.recv(decode=True)).encode()
        except websockets.ConnectionClosed as error:
            raise anyio.EndOfStream from error

    def end_input(self) -> None: ...
    def end_output(self) -> None: ...
    def close(self) -> None: ...


class OverLines:
    """A transport over JSON Lines."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self._held = bytearray()

    async def put(self, message: bytes) -> None:
        await self.stream.send(message + b"\n")

    async def take(self) -> bytes:
        while b"\n" not in self._held:
            try:
                self._held += await self.stream.receive(1 << 20)
            except anyio.BrokenResourceError as error:
                raise anyio.EndOfStream from error
        line, _, rest = bytes(self._held).partition(b"\n")
        self._held = bytearray(rest)
        return line

    def end_input(self) -> None: ...
    def end_output(self) -> None: ...
    def close(self) -> None: ...


@dataclass
class Listening:
    """A listening server and its scripted model."""

    server: Server
    side: ModelSide
    listener: Listener
    reception: Reception
    ended: anyio.Event = field(default_factory=anyio.Event)

    @property
    def address(self) -> str:
        return str(self.listener.address)

    @asynccontextmanager
    async def connection(self, **options: Any) -> AsyncGenerator[OverWebSocket | OverLines]:
        """Connect; the connection is closed after the block."""
        address = self.listener.address
        options = {"max_size": None, "max_queue": 16, **options}
        if isinstance(address, TcpAddress):
            async with websockets.connect(str(address), proxy=None, **options) as connection:
                yield OverWebSocket(connection)
        elif address.websocket:
            async with websockets.unix_connect(address.path, **options) as connection:
                yield OverWebSocket(connection)
        else:
            # The options are those of WebSockets.
            async with await anyio.connect_unix(address.path) as stream:
                yield OverLines(stream)

    @asynccontextmanager
    async def websocket(self, **options: Any) -> AsyncGenerator[OverWebSocket]:
        """Connect over a WebSocket, for tests of frames."""
        async with self.connection(**options) as line:
            assert isinstance(line, OverWebSocket)
            yield line

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncGenerator[Peer]:
        """Yield a client that disconnects after the block."""
        async with self.connection(**options) as line:
            yield Peer(line, self.server, self.side)  # type: ignore[arg-type]

    def raw(self) -> socket.socket:
        """Return a connected socket on which nothing was sent yet."""
        address = self.listener.address
        if isinstance(address, TcpAddress):
            return socket.create_connection((address.host, address.port))
        made = socket.socket(socket.AF_UNIX)
        made.connect(address.path)
        return made


@asynccontextmanager
async def listening(
    home: Path,
    kind: str = "ws",
    replies: Sequence[Reply | Refused] = (),
    *,
    admission: Admission | None = None,
    settings: Any = None,
    dialect: str = "",
) -> AsyncGenerator[Listening]:
    """Run a listening server in this process while the block runs."""
    environment = {"AGENT_DIALECT": dialect}
    side = ModelSide(list(replies))
    if kind == "ws":
        address = TcpAddress("127.0.0.1", 0)
    else:
        address = UnixAddress(str(home.parent / "socket"), websocket=kind == "ws+unix")
    listener = open_listener(address)
    try:
        async with running_server(
            Home(home),
            settings or config(),
            model_transport=side.transport,
            told_to_all=told_to_all_by_process(environment),
        ) as server:
            edge = edge_of_process(environment, home)
            reception = Reception(server, listener, admission or Admission(), edge)
            found = Listening(server, side, listener, reception)

            async def run() -> None:
                await reception.run()
                found.ended.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                try:
                    yield found
                finally:
                    server.stop()
                    with anyio.fail_after(10):
                        await found.ended.wait()
    finally:
        listener.close()


async def read_all(peer: Peer, until: str) -> list[dict[str, Any]]:
    """Read up to and including a notification `until`; return all messages so far."""
    while True:
        message = await peer.receive()
        if message.get("method") == until:
            return peer.seen


def said(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


__all__ = ["KINDS", "WEBSOCKETS", "Listening", "listening", "partial", "read_all", "said"]
