"""A server of any number of connections.

The bulk of the server (`services`) is imported when a request first needs it. Requests are carried
out in `handlers`.
"""

import time
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.connection import Connection
from reference_server.envelope import IncomingAnswer, IncomingRequest
from reference_server.extra_methods import FindExtraMethod, no_extra_method
from reference_server.lanes import Lanes
from reference_server.late_imports import fast_imports
from reference_server.outbox import Outbox
from reference_server.router import Router
from reference_server.scripted_answers import NO_ANSWERS, ScriptedAnswers
from reference_server.transport.base import Transport

if TYPE_CHECKING:
    from reference_server.model.errors import ReadFailure
    from reference_server.model.pool import MakeTransport
    from reference_server.services import Services
    from reference_server.session.thread import Clock


class Server:
    """Threads and turns, which live until the server stops; connections come and go."""

    def __init__(
        self,
        tasks: TaskGroup,
        home: Home,
        config: Config,
        *,
        model_transport: "MakeTransport | None" = None,
        requires_initialize: bool = False,
        answers: ScriptedAnswers = NO_ANSWERS,
        find_extra: FindExtraMethod = no_extra_method,
        read_failure: "ReadFailure | None" = None,
        told_to_all: Collection[str] = (),
        clock: "Clock" = time.time,
    ) -> None:
        self._lanes = Lanes(tasks)
        self._router = Router(
            self._lanes,
            lambda: self.services,
            requires_initialize=requires_initialize,
            answers=answers,
            find_extra=find_extra,
        )
        self._connections: set[Connection] = set()
        self.stop_requested = anyio.Event()
        self._tasks = tasks
        self._home = home
        self._config = config
        self._model_transport = model_transport
        self._read_failure = read_failure
        self._told_to_all = told_to_all
        self._clock = clock

    @cached_property
    def services(self) -> "Services":
        """Return the services of every request but the handshake; first used on the event loop."""
        with fast_imports():
            from reference_server.services import Services

        return Services(
            self._tasks,
            self._home,
            self._config,
            self._model_transport,
            self._read_failure,
            self._clock,
            self._outboxes,
            self._told_to_all,
        )

    def _outboxes(self) -> list[Outbox]:
        return [connection.outbox for connection in self._connections if connection.in_use]

    async def host(self, transport: Transport, _path: str) -> bool:
        """Serve one of several clients until it leaves; return whether it was too slow."""
        connection = Connection(transport, may_give_up=True)
        await self.serve(connection)
        return connection.outbox.given_up.is_set()

    async def serve(self, connection: Connection, *, then_stop: bool = False) -> None:
        """Serve one client until it leaves or the server stops; any number may be served at once.

        Its threads stay loaded, and their turns go on without it. With `then_stop` the server stops
        when this client leaves, as over stdio: running turns are interrupted, and the client is
        still sent their ends.
        """

        async def leave() -> None:
            if then_stop or self.stop_requested.is_set():
                await self.end_turns()
            self._unsubscribe(connection)

        self._connections.add(connection)
        if self.stop_requested.is_set():
            connection.stop_reading()
        try:
            await connection.run(self, before_closing=leave)
        finally:
            # Where the client no longer reads, the connection has ended without calling `leave`.
            self._unsubscribe(connection)
            self._connections.discard(connection)
            if then_stop:
                self.stop()

    def stop(self) -> None:
        """Stop reading from clients, interrupt running turns and notify the clients; do not wait.

        Every call of `serve` returns soon afterwards.
        """
        self.stop_requested.set()
        for connection in self._connections:
            connection.stop_reading()

    def _unsubscribe(self, connection: Connection) -> None:
        if "services" not in vars(self):
            return
        self.services.threads.unsubscribe(connection.outbox)
        if self.stop_requested.is_set():
            return
        from reference_server.abandoned import threads_to_unload, unload_abandoned

        for thread in threads_to_unload(self.services):
            self._lanes.submit(thread.id, partial(unload_abandoned, self.services, thread))

    async def take_request(self, connection: Connection, request: IncomingRequest) -> None:
        """Answer a request, or queue it."""
        await self._router.route(connection, request)

    def take_answer(self, connection: Connection, answer: IncomingAnswer) -> None:
        """Take a client's answer to a request of the server."""
        self.services.server_requests.take_answer(answer.id, answer.body, connection.outbox)

    async def end_turns(self) -> None:
        """Interrupt the running turns; wait until their ends are queued and recorded."""
        if "services" in vars(self):
            await self.services.end_turns()

    async def close(self) -> None:
        """Stop, and end everything; rollouts are on the disk afterwards."""
        self.stop()
        if "services" in vars(self):
            await self.services.close()


@asynccontextmanager
async def running_server(
    home: Home,
    config: Config,
    *,
    model_transport: "MakeTransport | None" = None,
    requires_initialize: bool = False,
    answers: ScriptedAnswers = NO_ANSWERS,
    find_extra: FindExtraMethod = no_extra_method,
    read_failure: "ReadFailure | None" = None,
    told_to_all: Collection[str] = (),
    clock: "Clock" = time.time,
) -> AsyncGenerator[Server]:
    """Run a server for the length of the block.

    Connections are attached within the block, each in a task of its own (`Server.serve`).
    """
    async with anyio.create_task_group() as tasks:
        server = Server(
            tasks,
            home,
            config,
            model_transport=model_transport,
            requires_initialize=requires_initialize,
            answers=answers,
            find_extra=find_extra,
            read_failure=read_failure,
            told_to_all=told_to_all,
            clock=clock,
        )
        try:
            yield server
        finally:
            with anyio.CancelScope(shield=True):
                await server.close()
            tasks.cancel_scope.cancel()
