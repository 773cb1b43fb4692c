"""Tools of one server, made on first use.

Tools take longer to import than any other part of the server, so the first tool call imports them
(`make_tools`), in a worker thread while other turns run.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio.lowlevel
from anyio import to_thread

from harness.protocol.wire.error import ErrorNotification, TurnError
from harness.protocol.wire.tool import DynamicTool
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.calls import ToolCall
from reference_server.engine.client_tools import offers as client_offers
from reference_server.engine.items import ItemLog
from reference_server.engine.tools.tool_definitions import offers
from reference_server.late_imports import fast_imports
from reference_server.session.server_requests import ServerRequests

if TYPE_CHECKING:
    from reference_server.engine.images import LocalImages
    from reference_server.engine.tools.base import Tool, ToolContext
    from reference_server.engine.tools.toolbox import Toolbox
    from reference_server.mcp.servers import McpServers
    from reference_server.model.secrets import Secrets
    from reference_server.sandbox.sandbox import Sandbox
    from reference_server.skills.library import Library

Fields = dict[str, Any]


class ToolProvider:
    """Tools that all turns of a server share, and their dependencies."""

    def __init__(
        self,
        home: Home,
        config: Config,
        server_requests: ServerRequests,
        mcp: "McpServers | None" = None,
    ) -> None:
        self.mcp = mcp
        self._home = home
        self._config = config
        self._server_requests = server_requests

    @cached_property
    def sandbox(self) -> "Sandbox":
        """Return the sandbox of commands, patches and the reading of images."""
        from reference_server.sandbox.sandbox import Sandbox

        return Sandbox(self._home.root, environment=self._config.environment)

    @cached_property
    def images(self) -> "LocalImages":
        """The reader of images on the disk."""
        from reference_server.engine.images import LocalImages

        return LocalImages(self.sandbox)

    @cached_property
    def skills(self) -> "Library":
        """The skills of this server."""
        from reference_server.skills.library import Library

        return Library(self._home, self._config)

    @cached_property
    def toolbox(self) -> "Toolbox":
        """The server's own tools."""
        from reference_server.engine.tools.standard import standard_tools

        return standard_tools(self._home, self._config, self.sandbox, self.images)

    @cached_property
    def secrets(self) -> "Secrets":
        """Return the secrets to redact in errors."""
        from reference_server.model.secrets import Secrets

        return Secrets.of_config(self._config)

    def offers(self) -> list[Fields]:
        """Return `tools` of a model call: the server's own and those of MCP servers."""
        return [*offers(self._config), *(self.mcp.offers() if self.mcp else ())]

    def mcp_tool(self, name: str) -> "Tool | None":
        """Return the MCP server's tool that the model calls by this name, else None."""
        server_and_tool = self.mcp and self.mcp.find(name)
        if not self.mcp or not server_and_tool:
            return None
        from reference_server.engine.tools.mcp import McpToolCall

        return McpToolCall(self.mcp, name, *server_and_tool, self.secrets.redact)

    async def make_tools(self) -> None:
        """Import and make the tools, unless that is done."""
        if "toolbox" not in vars(self):
            with fast_imports():
                await to_thread.run_sync(lambda: self.toolbox)

    async def close(self) -> None:
        """Close the MCP servers."""
        if self.mcp:
            await self.mcp.close()

    def context(
        self, log: ItemLog, interrupt: Callable[[], None], client_tools: Sequence[DynamicTool]
    ) -> "ToolContext":
        """Return a turn's context for its tools; `interrupt` interrupts the turn."""
        from reference_server.engine.approvals import Approvals
        from reference_server.engine.tools.base import ToolContext
        from reference_server.engine.tools.dynamic import ClientTool
        from reference_server.patch.diff import TurnDiff

        return ToolContext(
            thread=log.thread,
            log=log,
            approvals=Approvals(log.thread, log.turn_id, self._server_requests),
            server_requests=self._server_requests,
            diff=TurnDiff(log.thread.settings.cwd),
            interrupt=interrupt,
            client_tools={tool.name: ClientTool(tool.name) for tool in client_tools},
        )


class TurnCalls:
    """Tool calls of one turn; `client_tools` are the tools that the client provides."""

    def __init__(
        self,
        tools: ToolProvider,
        log: ItemLog,
        interrupt: Callable[[], None],
        client_tools: Sequence[DynamicTool] = (),
    ) -> None:
        self._tools = tools
        self._log = log
        self._interrupt = interrupt
        self._client_tools = client_tools
        self._unanswered: list[ToolCall] = []
        self._prepared = False

    @cached_property
    def _context(self) -> "ToolContext":
        return self._tools.context(self._log, self._interrupt, self._client_tools)

    async def prepare(self) -> None:
        """Wait for the tools of MCP servers; send an `error` for each newly missing server."""
        if self._tools.mcp is None:
            return
        failures = await self._tools.mcp.ready(retry=not self._prepared)
        self._prepared = True
        messages = {
            name: f"The MCP server {name} is not there: {failures[name]}; "
            "the turn goes on without its tools"
            for name in sorted(failures)
        }
        messages |= {words: words for words in self._tools.mcp.left_out()}
        reported, self._log.thread.missing_servers = self._log.thread.missing_servers, set(messages)
        for name in messages:
            if name not in reported:
                self._tell(self._tools.secrets.redact(messages[name]))

    def _tell(self, words: str) -> None:
        thread, error = self._log.thread, TurnError(message=words, agent_error_info="Other")
        thread.subscribers.notify(
            ErrorNotification(
                error=error, will_retry=True, thread_id=thread.id, turn_id=self._log.turn_id
            )
        )

    def offers(self) -> list[Fields]:
        """Return `tools` of a model call, those of the client included."""
        return [*self._tools.offers(), *client_offers(self._client_tools)]

    async def carry_out(
        self, calls: list[Fields], remember: Callable[[list[Fields]], None]
    ) -> None:
        """Carry out calls one after the other; `remember` gets each output. Raises OSError."""
        self._unanswered = [ToolCall.read(call) for call in calls]
        await self._tools.make_tools()
        while self._unanswered:
            # A decision on the previous call may have interrupted the turn.
            await anyio.lowlevel.checkpoint_if_cancelled()
            call = self._unanswered[0]
            tool = self._tools.mcp_tool(call.name)
            remember([await self._tools.toolbox.carry_out(call, self._context, tool)])
            self._unanswered.pop(0)

    def cut(self) -> list[Fields]:
        """Return an output for each call without one, as the next model call needs them all."""
        unanswered, self._unanswered = self._unanswered, []
        return [call.output_item("aborted: the turn ended") for call in unanswered]
