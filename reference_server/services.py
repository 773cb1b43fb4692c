"""Services of every request but the handshake: threads, turns, the model, tools.

Importing them takes most of the time that importing the server takes, so the server imports this
module with the first request that needs it (`Server.services`).
"""

import logging
from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.start import Engine
from reference_server.engine.tool_provider import ToolProvider
from reference_server.engine.turn import TurnSupport
from reference_server.engine.usage import ContextWindow
from reference_server.ids import IdAllocator
from reference_server.index.lists import ThreadLists
from reference_server.model.client import ModelClient
from reference_server.outbox import Outbox
from reference_server.presence import Presence
from reference_server.rollout.store import RolloutStore
from reference_server.rollout.sync import Syncer
from reference_server.session.forking import Forks
from reference_server.session.registry import Threads
from reference_server.session.server_requests import ServerRequests
from reference_server.session.subscribers import Everyone
from reference_server.session.thread import Clock

if TYPE_CHECKING:
    from reference_server.client_commands.commands import ClientCommands
    from reference_server.mcp.servers import McpServers
    from reference_server.model.errors import ReadFailure
    from reference_server.model.pool import MakeTransport

_log = logging.getLogger(__name__)

GRACE_SECONDS = 2.0
"""Seconds that interrupted turns have to end when the server stops."""


class Services:
    """The threads, the engine, the model client and the tools of one server."""

    def __init__(
        self,
        tasks: TaskGroup,
        home: Home,
        config: Config,
        model_transport: "MakeTransport | None",
        read_failure: "ReadFailure | None",
        clock: Clock,
        outboxes: Callable[[], list[Outbox]],
        told_to_all: Collection[str] = (),
    ) -> None:
        self._config = config
        self.everyone = Everyone(outboxes, told_to_all)
        rollouts = RolloutStore(home)
        ids = IdAllocator(home.counters, rollouts.highest_ids)
        self.model = ModelClient(tasks, model_transport, read_failure)
        self.syncer = Syncer()
        self.presence = Presence(home)
        self.threads = Threads(home, config, ids, rollouts, self.presence, clock, self.everyone)
        self.forks = Forks(self.threads, ids, rollouts, clock)
        self.lists = self.threads.watcher = ThreadLists(tasks, home, clock)
        self.server_requests = ServerRequests()
        self.tools = ToolProvider(
            home, config, self.server_requests, _mcp_servers(tasks, home, config)
        )
        support = TurnSupport(self.model, self.tools, ContextWindow.of(config))
        self.engine = Engine(tasks, config, ids, support, self.syncer)
        tasks.start_soon(self.syncer.run)

    @cached_property
    def client_commands(self) -> "ClientCommands":
        """Return the commands that clients run themselves."""
        from reference_server.client_commands.commands import ClientCommands

        return ClientCommands(self._config, self.tools)

    async def end_turns(self) -> None:
        """Interrupt the running turns; wait until their ends are queued and recorded."""
        running = [thread.turn for thread in self.threads.loaded_threads if thread.turn is not None]
        for turn in running:
            turn.interrupt()
        with anyio.move_on_after(GRACE_SECONDS):
            for turn in running:
                await turn.end_event.wait()

    async def close(self) -> None:
        """End the turns, then everything else; rollouts are on the disk afterwards."""
        await self.end_turns()
        await self.tools.close()
        await to_thread.run_sync(self._close_rollouts)
        self.threads.claims.close()
        await self.lists.close()
        self._release_presence()
        await self.model.close()

    def _release_presence(self) -> None:
        try:
            self.presence.release()
        except OSError as error:
            _log.warning("%s", error)

    def _close_rollouts(self) -> None:
        for thread in self.threads.loaded_threads:
            try:
                thread.recorder.close()
            except OSError as error:
                _log.error("%s: not synced to disk: %s", thread.recorder.path, error)


def _mcp_servers(tasks: TaskGroup, home: Home, config: Config) -> "McpServers | None":
    """Return the MCP servers; None, without importing their modules, if none is configured."""
    if not config.mcp_servers:
        return None
    from reference_server.mcp.servers import McpServers
    from reference_server.oauth.store import Store

    store = Store(home, config.mcp_oauth_credentials_store)
    return McpServers(tasks, config.mcp_servers, config.environment, store)
