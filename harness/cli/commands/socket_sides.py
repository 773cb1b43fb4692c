"""Socket ends as sides of a relay: WebSockets, and lines over a unix socket."""

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

from harness.cli.commands.standard_streams import GONE, read_lines
from harness.client.transport.connect import unix_path
from harness.client.transport.resets import abort, reset_socket
from harness.errors import TargetGone, UsageError
from harness.faults.live.lines import BreakableSide
from harness.faults.live.pieces import Cutter, Piece, encode_frames
from harness.trace.frame import Frame

# A longer message ends its connection, since messages are held in memory.
MAX_BYTES = 64 * 1024 * 1024
_CHUNK = 64 * 1024
_OVER_UNIX = "ws+unix:"
# The close code for a WebSocket client whose server cannot be reached.
_INTERNAL_ERROR = 1011


class ClosableSide(BreakableSide, Protocol):
    """One end of a socket, closed by `async with`. `token` is the client's authorization."""

    token: str | None

    async def refuse(self) -> None:
        """Close the connection, because the other side cannot be reached."""
        ...

    async def __aenter__(self) -> Self:
        """Return this side, to be closed at the end of the block."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        ...


class SocketSide:
    """A client or a server at the other end of a WebSocket."""

    def __init__(self, socket: Connection, token: str | None = None) -> None:
        self._socket = socket
        self.token = token

    async def receive(self) -> list[Piece]:
        """Return the next message, an empty list at the end."""
        try:
            return [Piece(await self._socket.recv(decode=False))]
        except ConnectionClosed:
            return []

    async def send(self, frames: list[Frame]) -> None:
        """Send messages as text, valid or not. Raises `TargetGone` if the connection is closed."""
        try:
            for frame in frames:
                await self._socket.send(frame.raw, text=True)
        except ConnectionClosed as error:
            raise TargetGone("the connection is closed") from error

    async def close(self) -> None:
        """Close the connection."""
        await self._socket.close()

    async def send_slices(self, frames: list[Frame]) -> None:
        """Send messages in fragments of a byte."""
        try:
            for frame in frames:
                fragments = [bytes([byte]) for byte in frame.raw]
                await self._socket.send(fragments or b"", text=True)
        except ConnectionClosed as error:
            raise TargetGone("the connection is closed") from error

    async def end_output(self) -> None:
        """End our direction of the socket without a closing handshake."""
        self._socket.transport.write_eof()

    async def reset(self) -> None:
        """Break the connection off."""
        abort(self._socket.transport)

    async def refuse(self) -> None:
        """Close the connection with an error code."""
        await self._socket.close(_INTERNAL_ERROR)

    async def __aenter__(self) -> Self:
        """Use it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()


class LineSide:
    """A client or a server that writes lines to a unix socket."""

    token: str | None = None

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._cutter = Cutter()

    async def receive(self) -> list[Piece]:
        """Return the next lines, an empty list at the end."""
        return await read_lines(self._read, self._cutter)

    async def _read(self) -> bytes:
        try:
            return await self._stream.receive(_CHUNK)
        except GONE:
            return b""

    async def send(self, frames: list[Frame]) -> None:
        """Write lines. Raises `TargetGone` if the connection is closed."""
        try:
            await self._stream.send(encode_frames(frames))
        except GONE as error:
            raise TargetGone("the connection is closed") from error

    async def send_slices(self, frames: list[Frame]) -> None:
        """Write lines byte by byte."""
        for byte in encode_frames(frames):
            with contextlib.suppress(*GONE):
                await self._stream.send(bytes([byte]))

    async def end_output(self) -> None:
        """End our direction."""
        await self.close()

    async def reset(self) -> None:
        """Break the connection off."""
        await reset_socket(self._stream)

    async def close(self) -> None:
        """Close our direction; the other one stays open."""
        with contextlib.suppress(*GONE):
            await self._stream.send_eof()

    async def refuse(self) -> None:
        """Close the connection."""
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
    """Accept clients at an address, call `client` for each, and yield the address and real port.

    Raises `OSError` if the address cannot be listened on, `UsageError` if the path of a socket is
    another file or in use.
    """

    async def socket_client(socket: ServerConnection) -> None:
        token = socket.request.headers.get("Authorization") if socket.request else None
        await client(SocketSide(socket, token))

    shared: dict[str, Any] = {"compression": None, "max_size": MAX_BYTES, "server_header": None}
    if address.startswith(_OVER_UNIX):
        remove_stale_socket(Path(unix_path(address)))
        async with unix_serve(socket_client, unix_path(address), origins=[None], **shared):
            with _remove_at_end(unix_path(address)):
                yield address
    elif address.startswith("unix:"):
        remove_stale_socket(Path(unix_path(address)))
        listener = await anyio.create_unix_listener(unix_path(address), mode=0o600)

        async def line_client(stream: SocketStream) -> None:
            async with LineSide(stream) as side:
                await client(side)

        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, line_client)
            with _remove_at_end(unix_path(address)):
                yield address
            tasks.cancel_scope.cancel()
    else:
        parts = urlsplit(address)
        async with serve(
            socket_client, parts.hostname, parts.port, origins=[None], **shared
        ) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            yield f"ws://{parts.hostname}:{port}"


async def connect_to(address: str, token: str | None = None) -> ClosableSide:
    """Connect to a server. Raises `OSError` if nothing listens there."""
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


def remove_stale_socket(path: Path) -> None:
    """Remove a socket file without a listener, if there is one.

    Raises `UsageError` for another kind of file, or if a program listens there.
    """
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
def _remove_at_end(path: str) -> Any:
    """Remove a socket's file at the end of the block."""
    try:
        yield
    finally:
        Path(path).unlink(missing_ok=True)
