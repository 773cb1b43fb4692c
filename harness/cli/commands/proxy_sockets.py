"""A proxy for clients that connect to a socket: one relay and one server side per client.

Only local clients that are not web pages are accepted.
"""

import contextlib
import errno
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import anyio
from anyio.abc import Process
from websockets.exceptions import InvalidHandshake

from harness.cli.commands.proxy import GRACE_SECONDS, end_server, forwarded_signals, send_signal
from harness.cli.commands.socket_sides import ClosableSide, clients_at, connect_to
from harness.cli.commands.standard_streams import ProcessStreams
from harness.cli.end_signals import received_signals
from harness.client.target.connecting import free_address
from harness.client.target.program import NotStarted, describe_start_failure, find_program
from harness.client.transport.connect import check_address
from harness.errors import TargetGone, UsageError
from harness.faults.live.chain import LineFilter
from harness.faults.live.lines import BreakableSide
from harness.faults.live.relay import Relay, Side

PLACEHOLDER = "{listen}"
# The longest wait until a server listens.
START_SECONDS = 30.0
_RETRY_SECONDS = 0.05
_STANDARD_ERROR = 2
_CONNECT_ERRORS = (OSError, NotStarted, InvalidHandshake, TimeoutError, TargetGone)
Say = Callable[[str], None]
E = TypeVar("E", bound=Exception)


@dataclass(frozen=True, slots=True)
class RelayOptions:
    """Options of the relays between clients and servers.

    `live` returns the line filter for a client's number, from 1; `on_client_left` is called when
    its conversation ends. `option` is named in messages about the server's command. `env` is the
    server's environment, None for ours; `to` is the address of a running server, "" for none.
    `bad_line` makes the side of the client with a number bad, None leaves it.
    """

    live: Callable[[int], LineFilter]
    quiet: float
    say: Say
    option: str
    on_client_left: Callable[[int], None] = field(default=lambda _: None)
    env: Mapping[str, str] | None = None
    to: str = ""
    bad_line: Callable[[BreakableSide, int], Side] | None = None


class ClientListener:
    """Listener that accepts clients and relays between each and its server.

    `inner` is the address of one server for all clients; "" starts a server for each.
    """

    def __init__(self, command: Sequence[str], between: RelayOptions, inner: str = "") -> None:
        self._listens = bool(inner)
        self._inner = between.to or inner
        words = [word.replace(PLACEHOLDER, inner) for word in command]
        self._command = find_program(words, between.option) if words else []
        self._between = between
        self._count = 0
        self._process: Process | None = None
        self._relays: set[Relay] = set()

    async def run(self, address: str) -> int:
        """Accept clients until a signal or the listening server's end.

        Return the exit status; a negative one is the signal.
        """
        status = 0
        with received_signals(forwarded_signals()) as signals:
            async with anyio.create_task_group() as tasks, self._server() as process:

                async def stop() -> None:
                    nonlocal status
                    async for number in signals:
                        status = -number
                        for relay in self._relays:
                            relay.note_client_left()
                        if process is None:
                            tasks.cancel_scope.cancel()
                        else:
                            send_signal(process, number)

                tasks.start_soon(stop)
                async with clients_at(address, self._client) as bound_address:
                    self._between.say(f"listening at {bound_address}")
                    if process is None:
                        await anyio.sleep_forever()
                    else:
                        status = await process.wait()
                tasks.cancel_scope.cancel()
        return status

    @asynccontextmanager
    async def _server(self) -> AsyncGenerator[Process | None]:
        """Start the server that listens for all clients; None if each client has its own."""
        if not self._listens:
            yield None
            return
        self._process = await self._start(stdin=DEVNULL, stdout=_STANDARD_ERROR)
        try:
            yield self._process
        finally:
            with anyio.CancelScope(shield=True):
                await end_server(self._process)
                await self._process.aclose()

    async def _start(self, *, stdin: int, stdout: int) -> Process:
        try:
            return await anyio.open_process(
                self._command,
                stdin=stdin,
                stdout=stdout,
                stderr=None,
                env=self._between.env,
                start_new_session=True,
            )
        except OSError as error:
            raise NotStarted(
                describe_start_failure(self._command, error, self._between.option)
            ) from error

    async def _client(self, side: ClosableSide) -> None:
        """Relay the conversation of one client; refuse it if its server cannot be reached."""
        self._count += 1
        number = self._count
        try:
            async with self._server_of(side.token) as server:
                make_bad = self._between.bad_line
                relay = Relay(
                    make_bad(side, number) if make_bad else side,
                    server,
                    self._between.live(number),
                    quiet_seconds=self._between.quiet,
                )
                self._relays.add(relay)
                try:
                    await hold_conversation(relay)
                finally:
                    self._relays.discard(relay)
                    self._between.on_client_left(number)
        except _CONNECT_ERRORS as error:
            self._between.say(f"client {number}: its server cannot be reached: {error}")
            await side.refuse()

    @asynccontextmanager
    async def _server_of(self, token: str | None) -> AsyncGenerator[Side]:
        """Yield the server side for one client: a connection, or a process of its own."""
        if self._inner:
            async with await self.server_at(self._inner, token) as side:
                yield side
            return
        process = await self._start(stdin=PIPE, stdout=PIPE)
        try:
            yield ProcessStreams(process)
        finally:
            with anyio.CancelScope(shield=True):
                await end_server(process)
                await process.aclose()

    async def server_at(self, address: str, token: str | None = None) -> ClosableSide:
        """Connect to the server; if this object started it, wait until it listens.

        Raises `TargetGone` if it ends first, `TimeoutError` after `START_SECONDS`.
        """
        with anyio.fail_after(START_SECONDS):
            while True:
                try:
                    return await connect_to(address, token)
                except OSError:
                    if self._process is None:
                        raise
                    with anyio.move_on_after(_RETRY_SECONDS):
                        await self._process.wait()
                        raise TargetGone("it ended before it listened") from None


def take_clients(address: str, command: Sequence[str], between: RelayOptions) -> int:
    """Serve clients at an address until a signal or the server's end; return the exit status.

    Raises `UsageError` if it cannot listen there, or if the server cannot be started.
    """
    return anyio.run(serve_clients, address, command, between)


async def serve_clients(address: str, command: Sequence[str], between: RelayOptions) -> int:
    """Do the work of `take_clients` in the running event loop."""
    check_listen(address)
    over_unix = address.startswith("unix:")
    with TemporaryDirectory(prefix="h") as folder:
        inner = ""
        if any(PLACEHOLDER in word for word in command):
            inner = free_address("unix" if over_unix else "ws", Path(folder))
        door = ClientListener(command, between, inner)
        try:
            return await door.run(address)
        # Not `except*`: before Python 3.11.4 an error raised in it becomes a group again.
        except ExceptionGroup as group:
            if refusal := _first_error(group, UsageError):
                raise UsageError(str(refusal)) from group
            if error := _first_error(group, OSError):
                raise UsageError(f"cannot listen at {address}: {_listen_error(error)}") from group
            raise


def _first_error(group: ExceptionGroup[Any], kind: type[E]) -> E | None:
    """Return the first error of this kind, however deep in groups; None if there is none."""
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            error = _first_error(cast("ExceptionGroup[Any]", error), kind)
        if isinstance(error, kind):
            return error
    return None


def _listen_error(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "something listens there already; end it, or give another port (0 for any free one)"
    return str(error)


def check_listen(address: str) -> None:
    """Raise `UsageError` for an address that cannot be listened on."""
    if not address.startswith(("ws://", "unix:", "ws+unix:")):
        raise UsageError(
            f"--listen takes ws://127.0.0.1:PORT, unix:PATH or ws+unix:PATH, and found {address!r}"
        )
    check_address(address, listen=True)


async def hold_conversation(relay: Relay) -> None:
    """Relay one conversation until the server ends, or `GRACE_SECONDS` after the client left."""
    async with anyio.create_task_group() as tasks:

        async def from_client() -> None:
            with contextlib.suppress(TargetGone):
                await relay.from_client()
            with anyio.move_on_after(GRACE_SECONDS):
                await ended.wait()
            tasks.cancel_scope.cancel()

        ended = anyio.Event()
        tasks.start_soon(from_client)
        tasks.start_soon(relay.watch_silence)
        with contextlib.suppress(TargetGone):
            await relay.from_server()
        ended.set()
        tasks.cancel_scope.cancel()
