"""All MCP servers of this process, shared by its threads, and the names of their tools.

A model takes names of at most 64 letters, digits, hyphens and underscores, and each once. Servers
have no such limits. A single server lives in `link`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from reference_server.config.mcp import McpServer
from reference_server.mcp.failure import McpFailure
from reference_server.mcp.link import Link
from reference_server.mcp.tools import OnProgress, offer
from reference_server.oauth.bearer import bearer_of
from reference_server.oauth.store import Store

if TYPE_CHECKING:
    from reference_server.mcp.session import Result
import hashlib
import re
from collections.abc import Iterable

MAX_NAME_CHARACTERS = 64
_DIGEST = 8


def model_names(tools: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Name each pair of a server and its tool: `mcp__SERVER__TOOL` where that is possible.

    A name that is too long, or that another pair has already, ends with a digest of the pair. So
    it does not depend on which other tools there are, but for the first of two that collide.
    """
    pairs: dict[str, tuple[str, str]] = {}
    for server, tool in tools:
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", f"mcp__{server}__{tool}")
        if len(name) > MAX_NAME_CHARACTERS or pairs.get(name, (server, tool)) != (server, tool):
            digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()
            name = f"{name[: MAX_NAME_CHARACTERS - _DIGEST - 1]}_{digest[:_DIGEST]}"
        pairs.setdefault(name, (server, tool))
    return pairs


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

    def left_out(self) -> list[str]:
        """Return a message for each tool that a server lists and that is not offered."""
        return [
            f"The MCP server {name}: {words}"
            for name, link in sorted(self._links.items())
            for words in link.listing.left_out
        ]

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
