"""The server put together: one per process, any number of connections.

Here lives what a connection needs, and when the rest (`parts`) is imported: after the first answer
is written, in the background, or when a request comes sooner. No part's behaviour lives here.
"""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.connection import Connection
from reference_server.lanes import Lanes
from reference_server.router import Router
from reference_server.warming import importing

if TYPE_CHECKING:
    import httpx

    from reference_server.engine.start import Engine
    from reference_server.parts import Parts
    from reference_server.session.asks import Asks
    from reference_server.session.registry import Threads
    from reference_server.session.thread import Clock


class Server:
    """What all connections share."""

    def __init__(
        self,
        tasks: TaskGroup,
        home: Home,
        config: Config,
        *,
        model_transport: "Callable[[], httpx.AsyncBaseTransport] | None" = None,
        requires_initialize: bool = False,
        clock: "Clock" = time.time,
        warmed: Callable[[], None] = lambda: None,
    ) -> None:
        self.requires_initialize = requires_initialize
        self.router = Router(Lanes(tasks))
        self._tasks = tasks
        self._home = home
        self._config = config
        self._model_transport = model_transport
        self._clock = clock
        self._warming = False
        self._warmed = warmed

    @cached_property
    def parts(self) -> "Parts":
        """What every request but the handshake needs; to be asked for on the event loop only."""
        from reference_server.parts import Parts

        return Parts(self._tasks, self._home, self._config, self._model_transport, self._clock)

    @property
    def threads(self) -> "Threads":
        """The threads of the home."""
        return self.parts.threads

    @property
    def engine(self) -> "Engine":
        """What begins turns."""
        return self.parts.engine

    @property
    def asks(self) -> "Asks":
        """What is asked of the clients."""
        return self.parts.asks

    async def serve(self, connection: Connection) -> None:
        """Serve the only client; when it leaves, running turns end and it is told so."""
        await connection.run(before_closing=self.end_turns)

    def warm(self, connection: Connection) -> None:
        """Import in the background, once, what the first turn needs.

        It begins when the connection's answers are written: they wait for no import.
        """
        if not self._warming:
            self._warming = True
            self._tasks.start_soon(self._warm_up, connection)

    async def _warm_up(self, connection: Connection) -> None:
        await connection.outbox.written()
        with importing():
            await to_thread.run_sync(import_module, "reference_server.parts")
            await to_thread.run_sync(self.parts.warm)
        # Who is in a hurry had its first turn by now, and it need not share the processor.
        await self.parts.no_turn()
        with importing():
            await to_thread.run_sync(self.parts.workshop.warm)
        self._warmed()

    async def end_turns(self) -> None:
        """Interrupt what runs, and wait until the clients are told and the rollouts are whole."""
        if "parts" in vars(self):
            await self.parts.end_turns()

    async def close(self) -> None:
        """End everything; rollouts are on the disk afterwards."""
        if "parts" in vars(self):
            await self.parts.close()


@asynccontextmanager
async def running_server(
    home: Home,
    config: Config,
    *,
    model_transport: "Callable[[], httpx.AsyncBaseTransport] | None" = None,
    requires_initialize: bool = False,
    clock: "Clock" = time.time,
    warmed: Callable[[], None] = lambda: None,
) -> AsyncGenerator[Server]:
    """Run a server for the length of the block; `warmed` is called when all is imported."""
    async with anyio.create_task_group() as tasks:
        server = Server(
            tasks,
            home,
            config,
            model_transport=model_transport,
            requires_initialize=requires_initialize,
            clock=clock,
            warmed=warmed,
        )
        try:
            yield server
        finally:
            with anyio.CancelScope(shield=True):
                await server.close()
            tasks.cancel_scope.cancel()
