"""What a tool is, and what it is given.

Here live the shapes between a turn and its tools. No tool lives here. What is offered to the model
and what its calls look like follow the Responses API: a function tool takes a JSON object as text,
a custom tool takes free text.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from reference_server.engine.approvals import Approvals
from reference_server.engine.items import ItemLog
from reference_server.patch.diff import TurnDiff
from reference_server.session.thread import LoadedThread
from reference_server.settings import ThreadSettings

Fields = dict[str, Any]


class CallError(Exception):
    """A call that cannot be carried out as it stands; str() is what the model is told."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of the model. `text` is the JSON of a function tool's arguments, or free text."""

    kind: str
    name: str
    id: str
    text: str

    @classmethod
    def read(cls, item: Fields) -> "ToolCall":
        """Read a function_call or custom_tool_call item."""
        kind = str(item["type"])
        text = item.get("input" if kind == "custom_tool_call" else "arguments")
        return cls(
            kind,
            str(item.get("name", "")),
            str(item.get("call_id", "")),
            text if isinstance(text, str) else "",
        )

    def arguments(self) -> Fields:
        """Give the arguments of a function tool. Raises CallError."""
        try:
            value: Any = json.loads(self.text or "{}")
        except ValueError as error:
            raise CallError(f"{self.name}: the arguments are not JSON: {error}") from None
        if not isinstance(value, dict):
            raise CallError(f"{self.name}: the arguments are not an object")
        return cast("Fields", value)

    def answered(self, output: str) -> Fields:
        """Give the output item that belongs to the call."""
        return {"type": f"{self.kind}_output", "call_id": self.id, "output": output}


@dataclass(frozen=True, slots=True)
class Scene:
    """The turn as its tools see it. `interrupt` ends the turn as interrupted."""

    thread: LoadedThread
    log: ItemLog
    approvals: Approvals
    diff: TurnDiff
    interrupt: Callable[[], None]

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

    def offer(self) -> Fields:
        """Give its entry in `tools` of a model call."""
        ...

    async def run(self, call: ToolCall, scene: Scene) -> str:
        """Carry a call out and give what the model is told. Raises CallError, OSError."""
        ...
