"""`harness faulty --listen`: a server with faults in it, for clients that connect by WebSocket.

Here: taking clients, and for each of them a connection to the server, or a server of its own where
that speaks on standard streams. Not here: the faults and one server's process (faulty), the
conversation (faults.live.relay). Only clients of this machine that are no web pages are let in.
"""

import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from urllib.parse import urlsplit

import anyio
from anyio.abc import Process
from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from harness.commands.faulty import GRACE, OPTION, Say, found, passed_on, push_out, send_signal
from harness.commands.standard_streams import ProcessStreams
from harness.errors import TargetGone, UsageError
from harness.faults.live.chain import FaultChain
from harness.faults.live.pieces import Piece
from harness.faults.live.relay import Relay, Side
from harness.target.program import NotStarted, why_not_started
from harness.target.ready import free_address
from harness.trace.frame import Frame
from harness.transport.connect import check

PLACEHOLDER = "{listen}"
# A message that is longer ends its connection: it would have to be held whole.
MOST_BYTES = 64 * 1024 * 1024
# Seconds that a server has until it listens.
START = 30.0
_BETWEEN = 0.05
_STANDARD_ERROR = 2


class SocketSide:
    """A client, or a server, at the other end of a WebSocket."""

    def __init__(self, socket: Connection) -> None:
        self._socket = socket

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


class Door:
    """Takes clients, each with its own faults: `chain` makes them for the client of a number."""

    def __init__(
        self, command: Sequence[str], chain: Callable[[int], FaultChain], quiet: float, say: Say
    ) -> None:
        self._listens = any(PLACEHOLDER in word for word in command)
        self._inner = free_address("ws", Path()) if self._listens else ""
        words = [word.replace(PLACEHOLDER, self._inner) for word in command]
        self._command = found(words)
        self._chain = chain
        self._quiet = quiet
        self._say = say
        self._count = 0
        self._process: Process | None = None

    async def run(self, address: str) -> int:
        """Take clients until a signal comes, or until the server that listens has ended.

        Gives the exit status; below 0 is the signal.
        """
        parts, status = urlsplit(address), 0
        with anyio.open_signal_receiver(*passed_on()) as signals:
            async with anyio.create_task_group() as tasks, self._server() as process:

                async def stop() -> None:
                    nonlocal status
                    async for number in signals:
                        status = -number
                        if process is None:
                            tasks.cancel_scope.cancel()
                        else:
                            send_signal(process, number)

                tasks.start_soon(stop)
                async with serve(
                    self._client,
                    parts.hostname,
                    parts.port,
                    origins=[None],
                    compression=None,
                    max_size=MOST_BYTES,
                    server_header=None,
                ) as server:
                    port = next(iter(server.sockets)).getsockname()[1]
                    self._say(f"faulty: listening at ws://{parts.hostname}:{port}")
                    if process is None:
                        await anyio.sleep_forever()
                    else:
                        status = await process.wait()
                tasks.cancel_scope.cancel()
        return status

    @asynccontextmanager
    async def _server(self) -> AsyncGenerator[Process | None]:
        """The server that listens for all clients, None where each client has its own."""
        if not self._listens:
            yield None
            return
        self._process = await self._start(stdin=DEVNULL, stdout=_STANDARD_ERROR)
        try:
            yield self._process
        finally:
            with anyio.CancelScope(shield=True):
                await push_out(self._process)
                await self._process.aclose()

    async def _start(self, *, stdin: int, stdout: int) -> Process:
        try:
            return await anyio.open_process(
                self._command, stdin=stdin, stdout=stdout, stderr=None, start_new_session=True
            )
        except OSError as error:
            raise NotStarted(why_not_started(self._command, error, OPTION)) from error

    async def _client(self, socket: ServerConnection) -> None:
        """The conversation of one client, from its connection on."""
        self._count += 1
        number = self._count
        try:
            async with self._reached(socket) as server:
                await _hold(
                    Relay(SocketSide(socket), server, self._chain(number), quiet=self._quiet)
                )
        except (OSError, NotStarted, InvalidHandshake, TimeoutError, TargetGone) as error:
            self._say(f"faulty: client {number}: its server cannot be reached: {error}")
            await socket.close(1011)

    @asynccontextmanager
    async def _reached(self, client: ServerConnection) -> AsyncGenerator[Side]:
        if self._process is None:
            process = await self._start(stdin=PIPE, stdout=PIPE)
            try:
                yield ProcessStreams(process)
            finally:
                with anyio.CancelScope(shield=True):
                    await push_out(process)
                    await process.aclose()
            return
        token = client.request.headers.get("Authorization") if client.request else None
        async with await self._connected(self._process, token) as socket:
            yield SocketSide(socket)

    async def _connected(self, process: Process, token: str | None) -> Connection:
        """A connection to the server as soon as it listens."""
        headers = {"Authorization": token} if token else None
        with anyio.fail_after(START):
            while True:
                try:
                    return await connect(
                        self._inner,
                        additional_headers=headers,
                        compression=None,
                        max_size=MOST_BYTES,
                        user_agent_header=None,
                        proxy=None,
                    )
                except OSError:
                    with anyio.move_on_after(_BETWEEN):
                        await process.wait()
                        raise TargetGone("it ended before it listened") from None


def listen(
    address: str, command: Sequence[str], chain: Callable[[int], FaultChain], quiet: float, say: Say
) -> int:
    """Serve clients at an address until a signal or the end of the server; gives the exit status.

    Raises `UsageError`.
    """
    if not address.startswith("ws://"):
        raise UsageError(f"--listen takes ws://127.0.0.1:PORT, and found {address!r}")
    # Any free port is meant by 0, to which nobody could connect.
    check(address.removesuffix(":0") + ":1" if address.endswith(":0") else address)
    chain(0)
    try:
        return anyio.run(Door(command, chain, quiet, say).run, address)
    except* UsageError as errors:
        raise UsageError(str(errors.exceptions[0])) from errors
    except* OSError as errors:
        raise UsageError(f"cannot listen at {address}: {errors.exceptions[0]}") from errors


async def _hold(relay: Relay) -> None:
    """One conversation: until the server has ended, or the client, and then the server too."""
    async with anyio.create_task_group() as tasks:

        async def from_client() -> None:
            with contextlib.suppress(TargetGone):
                await relay.from_client()
            with anyio.move_on_after(GRACE):
                await ended.wait()
            tasks.cancel_scope.cancel()

        ended = anyio.Event()
        tasks.start_soon(from_client)
        tasks.start_soon(relay.mind_silence)
        with contextlib.suppress(TargetGone):
            await relay.from_server()
        ended.set()
        tasks.cancel_scope.cancel()
