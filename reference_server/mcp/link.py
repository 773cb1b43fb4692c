"""Link to one MCP server, started on first use, and restarted if it has ended.

The SDK is not imported before the first start.
"""

import logging
import math
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from reference_server.config.mcp import McpServer
from reference_server.late_imports import fast_imports
from reference_server.mcp.failure import McpFailure, NotTaken
from reference_server.mcp.tools import Listing, OnProgress, listing
from reference_server.oauth.bearer import Bearer

if TYPE_CHECKING:
    from reference_server.mcp.session import Result, Session

_log = logging.getLogger(__name__)
Fields = dict[str, Any]
CLOSING = 5.0
"""Seconds to wait for the end of a program when this server stops; usually far less."""
LEAVING = 1.0
"""Seconds to wait for an HTTP server to end its session."""
SDK = "reference_server.mcp.session"
"""The module that imports the SDK."""


class Attempt:
    """One connection to a server, from its start to its end."""

    def __init__(
        self, server: McpServer, environment: Mapping[str, str], bearer: Bearer | None
    ) -> None:
        self.settled = anyio.Event()
        self.stop = anyio.Event()
        self.finished = anyio.Event()
        self.scope = anyio.CancelScope()
        self.session: Session | None = None
        self.listing = Listing()
        self.failure = ""
        self.started = False
        self._server = server
        self._environment = environment
        self._bearer = bearer
        self._listed = anyio.Event()
        self._known = 0

    async def run(self) -> None:
        """Connect and list the tools; stay until it ends or `stop` is set. Never raises.

        `settled` is set once the server has started or failed; `failure` is the reason then.
        """
        try:
            with self.scope:
                await self._live()
            if self.scope.cancelled_caught and not self.settled.is_set():
                self.failure = f"it did not start within {self._server.startup_timeout:g} seconds"
        except Exception as error:
            if not isinstance(error, McpFailure):
                _log.exception("MCP server %s", self._server.name)
            self.failure = str(error) or type(error).__name__
        finally:
            self.session = None
            self.settled.set()
            self.finished.set()
            self._listed.set()
        if self.failure and not self.stop.is_set():
            _log.warning("MCP server %s: %s", self._server.name, self.failure)

    async def _live(self) -> None:
        with fast_imports():
            await to_thread.run_sync(import_module, SDK)
        from reference_server.mcp.session import open_session

        self.scope.deadline = anyio.current_time() + self._server.startup_timeout
        async with open_session(self._server, self._environment, self._bearer) as session:
            await session.greet()
            await self._list(session)
            self.scope.deadline = math.inf
            self.session = session
            self.started = True
            self.settled.set()
            await self._stay(session)
            if not self.stop.is_set():
                self.failure = session.end_reason

    async def _list(self, session: "Session") -> None:
        changes = session.changes
        try:
            self.listing = listing(self._server, *await session.list_tools())
        finally:
            self._known = changes
        for words in self.listing.left_out:
            _log.warning("MCP server %s: %s", self._server.name, words)

    async def _stay(self, session: "Session") -> None:
        """Wait for the end of the session, and list the tools again whenever they change."""
        async with anyio.create_task_group() as tasks:

            async def stop_on(event: anyio.Event) -> None:
                await event.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(stop_on, self.stop)
            tasks.start_soon(stop_on, session.end_event)
            while True:
                await session.changed.wait()
                try:
                    await self._list(session)
                except McpFailure as error:
                    _log.warning("MCP server %s: %s", self._server.name, error)
                self._listed.set()
                self._listed = anyio.Event()

    async def wait_until_listed(self) -> None:
        """Wait until `listing` includes all changes that the server has announced."""
        while self.session is not None and self._known != self.session.changes:
            await self._listed.wait()


class Link:
    """A configured server, running or not."""

    def __init__(
        self,
        tasks: TaskGroup,
        server: McpServer,
        environment: Mapping[str, str],
        bearer: Bearer | None,
    ) -> None:
        self.server = server
        self._tasks = tasks
        self._environment = environment
        self._bearer = bearer
        self._attempt: Attempt | None = None
        self._last_failure = ""

    @property
    def listing(self) -> Listing:
        """Return the current list of tools, empty if the server is not connected."""
        attempt = self._attempt
        return Listing() if attempt is None or attempt.session is None else attempt.listing

    @property
    def failure(self) -> str:
        """Return why the server is missing; "" if it is connected, not started, or starting."""
        if (attempt := self._attempt) is None:
            return ""
        if not attempt.settled.is_set():
            return self._last_failure
        return "" if attempt.session is not None else attempt.failure

    async def ready(self, retry: bool = True) -> None:
        """Start the server unless it runs, and wait for its tools.

        A server whose last start failed is started again only with `retry`, and without waiting:
        otherwise each turn would wait for a server that hangs.
        """
        if not retry and self.failure:
            return
        attempt = await self._current()
        if not self._last_failure:
            await attempt.settled.wait()
        with anyio.move_on_after(self.server.startup_timeout):
            await attempt.wait_until_listed()

    async def call(self, tool: str, arguments: Fields, on_progress: OnProgress) -> "Result":
        """Call a tool, after restarting a server that has ended. Raises McpFailure."""
        try:
            return await (await self._session()).call(tool, arguments, on_progress)
        except NotTaken:
            # The server does not know the session any more, perhaps after a restart.
            if (attempt := self._attempt) is not None:
                attempt.stop.set()
                await attempt.finished.wait()
            return await (await self._session()).call(tool, arguments, on_progress)

    async def close(self) -> None:
        """End the connection and the server's program; wait at most CLOSING or LEAVING."""
        if self._bearer is not None:
            self._bearer.close()
        if (attempt := self._attempt) is None:
            return
        attempt.stop.set()
        if not attempt.settled.is_set():
            attempt.scope.cancel()
        with anyio.move_on_after(CLOSING if self.server.command else LEAVING):
            await attempt.finished.wait()
        attempt.scope.cancel()

    async def _session(self) -> "Session":
        attempt = await self._current()
        await attempt.settled.wait()
        if attempt.session is None:
            raise McpFailure(f"the server is not available: {attempt.failure}")
        return attempt.session

    async def _current(self) -> Attempt:
        """Return the running attempt or begin one, once the program of an ended one is gone."""
        attempt = self._attempt
        if (
            attempt is not None
            and attempt.session is not None
            and attempt.session.end_event.is_set()
        ):
            await attempt.finished.wait()
        # Another task may have waited too, and begun one.
        attempt = self._attempt
        if attempt is None or attempt.finished.is_set():
            self._last_failure = "" if attempt is None or attempt.started else attempt.failure
            attempt = self._attempt = Attempt(self.server, self._environment, self._bearer)
            self._tasks.start_soon(attempt.run)
        return attempt
