"""MCP servers that the harness plays: their configuration, starts, requests and answers.

They come from the marks of these servers, on every surface where an agent runs turns.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from harness.judge.base import Monitor
from harness.judge.rules.shared.process_events import item_of as item_of_event
from harness.judge.rules.shared.turn_calls import is_completed
from harness.judge.rules.shared.view_queries import item_in
from harness.judge.rules.shared.violations import Member, root_member
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import MarkBody, McpToolCall
from harness.trace.mcp_marks import McpAnswer, McpConfigured, McpRequest, McpStarted
from harness.trace.order import marked_before
from harness.trace.surface.base import Topic
from harness.trace.trace import Mark, Trace

# The ends of turns and of items, in sessions and in `agent exec`.
TURN_ENDS: tuple[Topic, ...] = (
    ("method", "turn/completed"),
    ("event", "turn.completed"),
    ("event", "turn.failed"),
)
ITEM_ENDS: tuple[Topic, ...] = (("method", "item/completed"), ("event", "item.completed"))
TOOL_CALL_TYPES = ("mcpToolCall", "mcp_tool_call")

B = TypeVar("B", bound=MarkBody)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """An item that shows a call of a server's tool, with its message."""

    frame: Frame
    item: dict[str, Any]

    @property
    def server(self) -> str:
        """Return the name of the tool's server."""
        return text(self.item.get("server"))

    @property
    def tool(self) -> str:
        """Return the name of the tool."""
        return text(self.item.get("tool"))

    @property
    def subject(self) -> str:
        """Return the call's name in findings; items of `agent exec` need no id."""
        item_id = text(self.item.get("id"))
        return f"{self.tool} of {self.server}" + (f", item {item_id}" if item_id else "")

    def member(self, *path: str) -> Member:
        """Return a member of the item."""
        above = ("params",) if self.frame.kind is Kind.NOTIFICATION else ()
        return root_member(self.frame, *above, "item", *path)


@dataclass(slots=True)
class ServerNotes:
    """MCP servers that the harness plays, by name, and their traffic up to a message.

    `answers` are keyed by the numbers of their requests.
    """

    servers: dict[str, McpConfigured] = field(default_factory=dict[str, McpConfigured])
    starts: list[McpStarted] = field(default_factory=list[McpStarted])
    requests: list[McpRequest] = field(default_factory=list[McpRequest])
    answers: dict[int, McpAnswer] = field(default_factory=dict[int, McpAnswer])

    def calls(self, server: str, tool: str) -> list[McpRequest]:
        """Return the calls of a tool that its server got over its transport and did not reject."""
        way = self.servers[server].transport
        return [
            request
            for request in self.requests
            if (request.server, request.tool, request.method) == (server, tool, "tools/call")
            and request.transport is way
            and not (request.number in self.answers and self.answers[request.number].refused)
        ]

    def has(self, call: ToolCall) -> bool:
        """Return whether the harness plays the tool that an item names.

        An agent may show servers and tools by longer names; those are not judged.
        """
        configured = self.servers.get(call.server)
        return configured is not None and call.tool in configured.tools


def marks_before(trace: Trace, frame: Frame | None, body: type[B]) -> Iterator[Mark[B]]:
    """Return the marks of a class before a message, or all of them if it is None."""
    return (mark for mark in trace.marks_of(body) if frame is None or marked_before(mark, frame))


def configured_in(trace: Trace) -> Iterator[McpConfigured]:
    """Yield the MCP servers that the harness plays; their marks begin the trace."""
    for mark in trace.marks:
        if trace.frames and not marked_before(mark, trace.frames[0]):
            return
        if isinstance(mark.body, McpConfigured):
            yield mark.body


def turn_completed(end: Frame) -> bool:
    """Return whether the message that ends a turn reports it as completed."""
    if end.kind is Kind.NOTIFICATION:
        return is_completed(end)
    return text(obj(end.json).get("type")) == "turn.completed"


class ServerRule(Monitor):
    """Base of rules on the MCP servers that the harness plays."""

    once = True

    def notes_before(self, frame: Frame | None) -> ServerNotes | None:
        """Return the servers and their traffic before a message, or all; None without servers."""
        trace = self.trace
        configured = {mark_body.server: mark_body for mark_body in configured_in(trace)}
        if not configured:
            return None
        return ServerNotes(
            configured,
            [mark.body for mark in marks_before(trace, frame, McpStarted)],
            [mark.body for mark in marks_before(trace, frame, McpRequest)],
            {mark.body.number: mark.body for mark in marks_before(trace, frame, McpAnswer)},
        )

    def call_in(self, frame: Frame) -> tuple[ToolCall, ServerNotes] | None:
        """Return the completed tool call that a message shows, None if the tool is not played."""
        item = item_in(frame) if frame.kind is Kind.NOTIFICATION else item_of_event(frame)
        if item.get("type") not in TOOL_CALL_TYPES or item.get("status") != "completed":
            return None
        played, call = self.notes_before(frame), ToolCall(frame, item)
        return (call, played) if played is not None and played.has(call) else None


def arguments_of(call: McpRequest | McpToolCall) -> dict[str, Any] | None:
    """Return the arguments of a call, None if they are not a JSON object."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
