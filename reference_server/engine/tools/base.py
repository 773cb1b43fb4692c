"""What a tool is, and what it is given.

Here live the shapes between a turn and its tools. No tool lives here, nor what the model is offered
(`offered`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from reference_server.engine.approvals import Approvals
from reference_server.engine.calls import Output, ToolCall
from reference_server.engine.images import Room
from reference_server.engine.items import ItemLog
from reference_server.patch.diff import TurnDiff
from reference_server.session.thread import LoadedThread
from reference_server.settings import ThreadSettings

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The turn as its tools see it.

    `interrupt` ends the turn as interrupted; `image_room` is what its images may still take.
    """

    thread: LoadedThread
    log: ItemLog
    approvals: Approvals
    diff: TurnDiff
    interrupt: Callable[[], None]
    image_room: Room = field(default_factory=Room)

    @property
    def settings(self) -> ThreadSettings:
        """What the turn runs under."""
        return self.thread.settings


class Tool(Protocol):
    """A tool of the server."""

    @property
    def name(self) -> str:
        """What the model calls it by."""
        ...

    async def run(self, call: ToolCall, context: ToolContext) -> Output:
        """Carry a call out and give what the model is told. Raises CallError, OSError."""
        ...
