"""Interface of a tool, and its context.

Each tool has a module; `tool_definitions` has the descriptions for the model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from reference_server.engine.approvals import Approvals
from reference_server.engine.calls import Output, ToolCall
from reference_server.engine.images import ImageBudget
from reference_server.engine.items import ItemLog
from reference_server.patch.diff import TurnDiff
from reference_server.session.server_requests import ServerRequests
from reference_server.session.thread import LoadedThread
from reference_server.settings import ThreadSettings

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Parts of a turn that a tool may use.

    `interrupt` ends the turn as interrupted; `client_tools`: the client's tools by name;
    `image_budget`: the bytes left for images in this turn.
    """

    thread: LoadedThread
    log: ItemLog
    approvals: Approvals
    server_requests: ServerRequests
    diff: TurnDiff
    interrupt: Callable[[], None]
    client_tools: "Mapping[str, Tool]" = field(default_factory=dict[str, "Tool"])
    image_budget: ImageBudget = field(default_factory=ImageBudget)

    @property
    def settings(self) -> ThreadSettings:
        """The settings of the turn."""
        return self.thread.settings


class Tool(Protocol):
    """A tool of the server."""

    @property
    def name(self) -> str:
        """Return the name by which the model calls it."""
        ...

    async def run(self, call: ToolCall, context: ToolContext) -> Output:
        """Carry out a call and return its output for the model. Raises CallError, OSError."""
        ...
