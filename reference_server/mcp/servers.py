"""All MCP servers of this process, shared by its threads, and the names of their tools.

A model takes unique names of at most 64 letters, digits, hyphens and underscores. MCP servers have
no such limits. `link` connects to a single server.
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
    """Return pairs of server and tool by the name for the model, `mcp__SERVER__TOOL` if possible.

    A name that is too long, or that another pair already has, ends with a digest of the pair. So
    names depend on the other tools only if two collide.
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
    """The configured and enabled servers."""

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

        With `retry` servers whose last start failed are started too.
        """
        async with anyio.create_task_group() as tasks:
            for link in self._links.values():
                tasks.start_soon(link.ready, retry)
        return {name: link.failure for name, link in self._links.items() if link.failure}

    def left_out(self) -> list[str]:
        """Return messages about tools that servers list but that are not offered."""
        return [
            f"The MCP server {name}: {words}"
            for name, link in sorted(self._links.items())
            for words in link.listing.left_out
        ]

    def offers(self) -> list[Fields]:
        """Return the entries of `tools` in a model call, for the servers now connected."""
        tools = {
            (name, tool.name): tool
            for name, link in self._links.items()
            for tool in link.listing.tools
        }
        self._names = model_names(tools)
        return [offer(name, tools[pair]) for name, pair in self._names.items()]

    def find(self, name: str) -> tuple[str, str] | None:
        """Return the server and the tool that the last `offers` gave this name, else None."""
        return self._names.get(name)

    async def call(
        self, server: str, tool: str, arguments: Fields, on_progress: OnProgress
    ) -> "Result":
        """Call a tool and return its result. Raises McpFailure.

        A cancelled call returns at once, without waiting for a server that may not read.
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
        """End all servers, at the same time."""
        async with anyio.create_task_group() as tasks:
            for link in self._links.values():
                tasks.start_soon(link.close)
