"""The two ends of a socket as sides of a conversation: WebSockets, and lines over a unix socket."""

import contextlib
import socket
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketStream
from websockets.asyncio.client import connect, unix_connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve, unix_serve
from websockets.exceptions import ConnectionClosed

from harness.cli.commands.standard_streams import GONE, lines
from harness.client.transport.connect import unix_path
from harness.errors import TargetGone, UsageError
from harness.faults.live.pieces import Cutter, Piece, all_written
from harness.faults.live.relay import Side
from harness.trace.frame import Frame

# A message that is longer ends its connection: it would have to be held whole.
MAX_BYTES = 64 * 1024 * 1024
_CHUNK = 64 * 1024
_OVER_UNIX = "ws+unix:"
# The code by which a WebSocket is closed whose server cannot be reached.
_INTERNAL_ERROR = 1011


class ClosableSide(Side, Protocol):
    """One end of a socket, which `async with` closes. `token` is what the client is let in by."""

    token: str | None

    async def refuse(self) -> None:
        """Close it, since there is nobody to talk to."""
        ...

    async def __aenter__(self) -> Self:
        """Use it, and close it in the end."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        ...


class SocketSide:
    """A client, or a server, at the other end of a WebSocket."""

    def __init__(self, socket: Connection, token: str | None = None) -> None:
        self._socket = socket
        self.token = token

    async def receive(self) -> list[Piece]:
        """The next message, nothing at the end."""
        try:
            return [Piece(await self._socket.recv(decode=False))]
        except ConnectionClosed:
            return []

    async def send(self, frames: list[Frame]) -> None:
        """Write messages as text, valid or not. Raises `TargetGone`."""
        try:
            for frame in frames:
                await self._socket.send(frame.raw, text=True)
        except ConnectionClosed as error:
            raise TargetGone("the connection is closed") from error

    async def close(self) -> None:
        """Close the connection."""
        await self._socket.close()

    async def refuse(self) -> None:
        """Close it with the code of an error."""
        await self._socket.close(_INTERNAL_ERROR)

    async def __aenter__(self) -> Self:
        """Use it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()


class LineSide:
    """A client, or a server, that writes lines to a unix socket."""

    token: str | None = None

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._cutter = Cutter()

    async def receive(self) -> list[Piece]:
        """Some lines, nothing at the end."""
        return await lines(self._read, self._cutter)

    async def _read(self) -> bytes:
        try:
            return await self._stream.receive(_CHUNK)
        except GONE:
            return b""

    async def send(self, frames: list[Frame]) -> None:
        """Write lines. Raises `TargetGone`."""
        try:
            await self._stream.send(all_written(frames))
        except GONE as error:
            raise TargetGone("the connection is closed") from error

    async def close(self) -> None:
        """Close our direction; the other one goes on."""
        with contextlib.suppress(*GONE):
            await self._stream.send_eof()

    async def refuse(self) -> None:
        """Close it."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        """Use it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self._stream.aclose()


@asynccontextmanager
async def clients_at(
    address: str, client: Callable[[ClosableSide], Awaitable[None]]
) -> AsyncGenerator[str]:
    """Take clients at an address; gives the address, with the port where any was meant.

    Raises `OSError` where nobody can listen there.
    """

    async def socket_client(socket: ServerConnection) -> None:
        token = socket.request.headers.get("Authorization") if socket.request else None
        await client(SocketSide(socket, token))

    shared: dict[str, Any] = {"compression": None, "max_size": MAX_BYTES, "server_header": None}
    if address.startswith(_OVER_UNIX):
        make_way(Path(unix_path(address)))
        async with unix_serve(socket_client, unix_path(address), origins=[None], **shared):
            with _removed(unix_path(address)):
                yield address
    elif address.startswith("unix:"):
        make_way(Path(unix_path(address)))
        listener = await anyio.create_unix_listener(unix_path(address), mode=0o600)

        async def line_client(stream: SocketStream) -> None:
            async with LineSide(stream) as side:
                await client(side)

        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, line_client)
            with _removed(unix_path(address)):
                yield address
            tasks.cancel_scope.cancel()
    else:
        parts = urlsplit(address)
        async with serve(
            socket_client, parts.hostname, parts.port, origins=[None], **shared
        ) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            yield f"ws://{parts.hostname}:{port}"


async def connected(address: str, token: str | None = None) -> ClosableSide:
    """A connection to a server. Raises `OSError` where nothing listens there."""
    headers = {"Authorization": token} if token else None
    shared: dict[str, Any] = {
        "additional_headers": headers,
        "compression": None,
        "max_size": MAX_BYTES,
        "user_agent_header": None,
    }
    if address.startswith(_OVER_UNIX):
        return SocketSide(await unix_connect(unix_path(address), "ws://localhost/", **shared))
    if address.startswith("unix:"):
        return LineSide(await anyio.connect_unix(unix_path(address)))
    return SocketSide(await connect(address, proxy=None, **shared))


def make_way(path: Path) -> None:
    """Remove a socket that nobody listens at any more. Raises `UsageError` for anything else."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise UsageError(f"cannot listen at unix:{path}: there is another file")
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(path))
        raise UsageError(f"cannot listen at unix:{path}: another program listens there")
    except FileNotFoundError:
        return
    except ConnectionRefusedError:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _removed(path: str) -> Any:
    """The file of a socket, which goes when nobody listens there any more."""
    try:
        yield
    finally:
        Path(path).unlink(missing_ok=True)
