"""The server put together: one per process, any number of connections.

Here lives the wiring of the parts and their orderly end. No part's behaviour lives here.
"""

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.connection import Connection
from reference_server.engine.start import Engine
from reference_server.engine.turn import TurnSupport
from reference_server.engine.usage import ContextWindow
from reference_server.engine.workshop import Workshop
from reference_server.ids import IdAllocator
from reference_server.lanes import Lanes
from reference_server.model.client import ModelClient
from reference_server.rollout.store import RolloutStore
from reference_server.rollout.sync import Syncer
from reference_server.router import Router
from reference_server.session.asks import Asks
from reference_server.session.registry import Threads
from reference_server.session.thread import Clock

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)

GRACE = 2.0
"""Seconds that interrupted turns have to end when the server does."""


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
        clock: Clock = time.time,
    ) -> None:
        rollouts = RolloutStore(home)
        ids = IdAllocator(home.counters, rollouts.highest_ids)
        self.requires_initialize = requires_initialize
        self.model = ModelClient(tasks, model_transport)
        self.syncer = Syncer()
        self.threads = Threads(config, ids, rollouts, clock)
        self.asks = Asks()
        self.workshop = Workshop(home, config, self.asks)
        support = TurnSupport(self.model, self.workshop, ContextWindow.of(config))
        self.engine = Engine(tasks, config, ids, support, self.syncer)
        self.router = Router(Lanes(tasks))
        self._tasks = tasks
        self._warming = False

    async def serve(self, connection: Connection) -> None:
        """Serve the only client; when it leaves, running turns end and it is told so."""
        await connection.run(before_closing=self.end_turns)

    def warm(self) -> None:
        """Import, in the background and once, what the first turn needs."""
        if not self._warming:
            self._warming = True
            self._tasks.start_soon(to_thread.run_sync, self._warm_up)

    def _warm_up(self) -> None:
        self.model.warm()
        self.workshop.warm()

    async def end_turns(self) -> None:
        """Interrupt what runs, and wait until the clients are told and the rollouts are whole."""
        running = [thread.turn for thread in self.threads.loaded if thread.turn is not None]
        for turn in running:
            turn.interrupt()
        with anyio.move_on_after(GRACE):
            for turn in running:
                await turn.done.wait()

    async def close(self) -> None:
        """End everything; rollouts are on the disk afterwards."""
        await self.end_turns()
        await to_thread.run_sync(self._close_rollouts)
        await self.model.close()

    def _close_rollouts(self) -> None:
        for thread in self.threads.loaded:
            try:
                thread.recorder.close()
            except OSError as error:
                _log.error("%s: not synced to disk: %s", thread.recorder.path, error)


@asynccontextmanager
async def running_server(
    home: Home,
    config: Config,
    *,
    model_transport: "Callable[[], httpx.AsyncBaseTransport] | None" = None,
    requires_initialize: bool = False,
    clock: Clock = time.time,
) -> AsyncGenerator[Server]:
    """Run a server for the length of the block."""
    async with anyio.create_task_group() as tasks:
        server = Server(
            tasks,
            home,
            config,
            model_transport=model_transport,
            requires_initialize=requires_initialize,
            clock=clock,
        )
        tasks.start_soon(server.syncer.run)
        try:
            yield server
        finally:
            with anyio.CancelScope(shield=True):
                await server.close()
            tasks.cancel_scope.cancel()
