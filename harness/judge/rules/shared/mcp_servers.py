"""MCP servers of a trace for rules: what was configured, started, asked and answered.

By the marks of the servers that the harness plays (trace.mcp_marks), on every surface on which an
agent runs turns.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from harness.judge.base import Monitor
from harness.judge.rules.shared.streams import item_of as item_of_event
from harness.judge.rules.shared.turn_calls import came_to_its_end
from harness.judge.rules.shared.view_queries import item_in
from harness.judge.rules.shared.violations import Member, whole
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import MarkBody, McpAsked
from harness.trace.mcp_marks import McpAnswer, McpConfigured, McpRequest, McpStarted
from harness.trace.order import marked_before
from harness.trace.surface.base import Topic
from harness.trace.trace import Mark, Trace

# The ends of turns, and the ends of items, on both surfaces.
TURN_ENDS: tuple[Topic, ...] = (
    ("method", "turn/completed"),
    ("event", "turn.completed"),
    ("event", "turn.failed"),
)
ITEM_ENDS: tuple[Topic, ...] = (("method", "item/completed"), ("event", "item.completed"))
SHOWN = ("mcpToolCall", "mcp_tool_call")

B = TypeVar("B", bound=MarkBody)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """An item that shows a call of a tool of a server: its message, and what it says."""

    frame: Frame
    item: dict[str, Any]

    @property
    def server(self) -> str:
        """The server that it names."""
        return text(self.item.get("server"))

    @property
    def tool(self) -> str:
        """The tool that it names."""
        return text(self.item.get("tool"))

    @property
    def subject(self) -> str:
        """Return its name in findings; ids are no part of the items of `agent exec`."""
        named = text(self.item.get("id"))
        return f"{self.tool} of {self.server}" + (f", item {named}" if named else "")

    def member(self, *path: str) -> Member:
        """A member of the item."""
        above = ("params",) if self.frame.kind is Kind.NOTIFICATION else ()
        return whole(self.frame, *above, "item", *path)


@dataclass(slots=True)
class Played:
    """Notes on the servers of a play before a message."""

    configured: dict[str, McpConfigured] = field(default_factory=dict[str, McpConfigured])
    started: list[McpStarted] = field(default_factory=list[McpStarted])
    requests: list[McpRequest] = field(default_factory=list[McpRequest])
    answers: dict[int, McpAnswer] = field(default_factory=dict[int, McpAnswer])

    def calls(self, server: str, tool: str) -> list[McpRequest]:
        """The calls of a tool that a server got in its own way, and did not refuse."""
        way = self.configured[server].transport
        return [
            one
            for one in self.requests
            if (one.server, one.tool, one.method) == (server, tool, "tools/call")
            and one.transport is way
            and not (one.number in self.answers and self.answers[one.number].refused)
        ]

    def has(self, call: ToolCall) -> bool:
        """Return whether the tool that an item names is one of the play.

        An agent may show servers and tools by longer names: what those mean is not judged.
        """
        configured = self.configured.get(call.server)
        return configured is not None and call.tool in configured.tools


def before(trace: Trace, frame: Frame | None, body: type[B]) -> Iterator[Mark[B]]:
    """The marks of a class that were written before a message was seen; all for None."""
    return (mark for mark in trace.marks_of(body) if frame is None or marked_before(mark, frame))


def configured_in(trace: Trace) -> Iterator[McpConfigured]:
    """The servers of a play: its trace begins with them, so that no whole trace is searched."""
    for mark in trace.marks:
        if trace.frames and not marked_before(mark, trace.frames[0]):
            return
        if isinstance(mark.body, McpConfigured):
            yield mark.body


def completed(end: Frame) -> bool:
    """Return whether the end of a turn says that the turn was completed."""
    if end.kind is Kind.NOTIFICATION:
        return came_to_its_end(end)
    return text(obj(end.json).get("type")) == "turn.completed"


class OfServers(Monitor):
    """A rule over the servers of a play; nothing is judged where the harness plays none."""

    once = True

    def played(self, frame: Frame | None) -> Played | None:
        """Return the notes before a message, or all; None if no server is played."""
        trace = self.trace
        configured = {one.server: one for one in configured_in(trace)}
        if not configured:
            return None
        return Played(
            configured,
            [one.body for one in before(trace, frame, McpStarted)],
            [one.body for one in before(trace, frame, McpRequest)],
            {one.body.number: one.body for one in before(trace, frame, McpAnswer)},
        )

    def call_in(self, frame: Frame) -> tuple[ToolCall, Played] | None:
        """The completed call of a tool of the play that a message shows."""
        item = item_in(frame) if frame.kind is Kind.NOTIFICATION else item_of_event(frame)
        if item.get("type") not in SHOWN or item.get("status") != "completed":
            return None
        played, call = self.played(frame), ToolCall(frame, item)
        return (call, played) if played is not None and played.has(call) else None


def arguments_of(noted: McpRequest | McpAsked) -> dict[str, Any] | None:
    """The arguments of a call, None where they were not noted."""
    try:
        value = json.loads(noted.arguments)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
