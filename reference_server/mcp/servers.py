"""All MCP servers of this process, shared by its threads.

A single server lives in `link`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from reference_server.config.mcp import McpServer
from reference_server.mcp.failure import McpFailure
from reference_server.mcp.link import Link
from reference_server.mcp.names import model_names
from reference_server.mcp.tools import OnProgress, offer
from reference_server.oauth.bearer import bearer_of
from reference_server.oauth.store import Store

if TYPE_CHECKING:
    from reference_server.mcp.session import Result

Fields = dict[str, Any]


class McpServers:
    """The servers that are configured and enabled."""

    def __init__(
        self,
        tasks: TaskGroup,
        servers: Mapping[str, McpServer],
        environment: Mapping[str, str],
        credentials: Store,
    ) -> None:
        self._tasks = tasks
        self._links = {
            name: Link(tasks, server, environment, bearer_of(tasks, server, credentials))
            for name, server in servers.items()
        }
        self._names: dict[str, tuple[str, str]] = {}

    async def ready(self, *, retry: bool) -> dict[str, str]:
        """Start idle servers, wait for the tools of all, and return failures by server.

        `retry`: also what did not start the last time.
        """
        async with anyio.create_task_group() as tasks:
            for link in self._links.values():
                tasks.start_soon(link.ready, retry)
        return {name: link.failure for name, link in self._links.items() if link.failure}

    def offers(self) -> list[Fields]:
        """Return the entries of `tools` in a model call, of the servers that are there now."""
        tools = {
            (name, tool.name): tool
            for name, link in self._links.items()
            for tool in link.listing.tools
        }
        self._names = model_names(tools)
        return [offer(name, tools[pair]) for name, pair in self._names.items()]

    def find(self, name: str) -> tuple[str, str] | None:
        """Return the server and the tool that the model calls by this name."""
        return self._names.get(name)

    async def call(
        self, server: str, tool: str, arguments: Fields, on_progress: OnProgress
    ) -> "Result":
        """Call a tool. Raises McpFailure.

        When cancelled, the server is notified without waiting for it: it may not read.
        """
        link = self._links[server]
        return await self._run_abandonable(lambda: link.call(tool, arguments, on_progress))

    async def _run_abandonable(self, work: Callable[[], Awaitable["Result"]]) -> "Result":
        scope, done = anyio.CancelScope(), anyio.Event()
        results: list[Result] = []
        errors: list[Exception] = []

        async def run() -> None:
            with scope:
                try:
                    results.append(await work())
                except Exception as error:
                    errors.append(error)
            done.set()

        self._tasks.start_soon(run)
        try:
            await done.wait()
        finally:
            scope.cancel()
        if errors:
            raise errors[0]
        if not results:
            raise McpFailure("the agent ends")
        return results[0]

    async def close(self) -> None:
        """End all of them."""
        async with anyio.create_task_group() as tasks:
            for link in self._links.values():
                tasks.start_soon(link.close)
