"""Faults between an agent and the MCP servers that the harness plays.

Most of them change marks: a server's requests are not messages of the session.
"""

import dataclasses
from collections.abc import Callable

from harness.faults import stored
from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.changes import first
from harness.faults.item_selectors import item_completed
from harness.faults.operators import edit
from harness.faults.site import FaultSite
from harness.trace.marks import MarkBody, McpToolCall, ModelCall
from harness.trace.mcp_marks import McpConfigured, McpRequest, McpStarted, McpVariable, Possession
from harness.trace.trace import B, Mark, Trace

WHY = "the change is in marks: a server's requests are not messages"


def edit_marks(body: type[B], how: Callable[[B], B], fits: Callable[[B], bool]) -> StoredOnly:
    """Return a change of the marks of a class that fit; it raises `NotApplied` if none does."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        marks = [mark for mark in trace.marks_of(body) if fits(mark.body)]
        if not marks:
            raise NotApplied(f"no mark {body.kind} that fits")
        return stored.replace_marks(trace, marks, how)

    return StoredOnly(WHY, make)


def drop_tool_calls(_: FaultSite, trace: Trace) -> Trace:
    """Remove the marks of all tool calls. Raises `NotApplied` if there are none."""

    def calls(mark: Mark[MarkBody]) -> bool:
        return isinstance(mark.body, McpRequest) and mark.body.method == "tools/call"

    if not any(map(calls, trace.marks)):
        raise NotApplied("no call of a tool of a server")
    return stored.remove_marks(trace, calls)


def offer_disabled_tools(_: FaultSite, trace: Trace) -> Trace:
    """Offer the model the tools of servers that are not enabled."""
    disabled_tools = [
        McpToolCall(mark.body.server, tool)
        for mark in trace.marks_of(McpConfigured)
        for tool in mark.body.tools
        if not mark.body.enabled
    ]
    calls = [mark for mark in trace.marks_of(ModelCall) if mark.body.offered]
    if not disabled_tools or not calls:
        raise NotApplied("no server that is not enabled beside one whose tools are offered")
    return stored.replace_marks(
        trace,
        calls,
        lambda call: dataclasses.replace(call, offered=(*call.offered, *disabled_tools)),
    )


def _is_call(request: McpRequest) -> bool:
    return request.method == "tools/call"


FAULTS: tuple[Fault, ...] = (
    Fault(
        "mcp-server-args-joined",
        rule="mcp-server.arguments",
        on="mcp-played",
        reason="The args of a stdio server are the arguments of its program.",
        change=edit_marks(
            McpStarted,
            lambda body: dataclasses.replace(body, args=tuple(" ".join(body.args).split(" "))),
            lambda body: any(" " in word for word in body.args),
        ),
    ),
    Fault(
        "mcp-server-without-env",
        rule="mcp-server.environment",
        on="mcp-played",
        reason="The env of a stdio server is the environment that its program has.",
        change=edit_marks(
            McpStarted,
            lambda body: dataclasses.replace(
                body, variables=tuple(McpVariable(v.name, Possession.NONE) for v in body.variables)
            ),
            lambda body: bool(body.variables),
        ),
    ),
    Fault(
        "mcp-server-inherits-token",
        rule="mcp-server.no-credentials",
        on="mcp-played",
        reason="A stdio server receives credentials only through its env entries.",
        change=edit_marks(
            McpStarted,
            lambda body: dataclasses.replace(body, tokens=("DOCS_BEARER",)),
            lambda body: not body.tokens,
        ),
    ),
    Fault(
        "mcp-server-token-not-sent",
        rule="mcp-server.bearer-token",
        on="mcp-played",
        reason="The bearer token is read from the variable that the configuration names.",
        change=edit_marks(
            McpRequest,
            lambda body: dataclasses.replace(body, token=Possession.NONE),
            lambda body: body.token is Possession.SAME,
        ),
    ),
    Fault(
        "mcp-server-off-and-offered",
        rule="mcp-server.enabled-only",
        on="mcp-played",
        reason="A server that is not enabled gives the agent no tools.",
        change=StoredOnly(WHY, offer_disabled_tools),
    ),
    Fault(
        "mcp-server-never-called",
        rule="mcp-server.called",
        on="mcp-played",
        reason="A stdio server is spoken to over its standard streams, another one over HTTP.",
        change=StoredOnly(WHY, drop_tool_calls),
    ),
    Fault(
        "mcp-server-given-other-arguments",
        rule="mcp-server.call-arguments",
        on="mcp-played",
        reason="A tool gets the arguments that its call has.",
        change=edit_marks(
            McpRequest, lambda body: dataclasses.replace(body, arguments='{"a": "2"}'), _is_call
        ),
    ),
    Fault(
        "mcp-server-other-result-shown",
        rule="mcp-server.result-shown",
        on="mcp-played",
        reason="The result of a completed call is what the server answered.",
        change=first(
            item_completed("mcpToolCall"), edit("params", "item", "result", to={"content": [1]})
        ),
    ),
    Fault(
        "mcp-server-result-not-told",
        rule="mcp-server.result-told",
        on="mcp-played",
        reason="A tool is for the model, which is told what it says.",
        change=edit_marks(
            ModelCall,
            lambda body: dataclasses.replace(body, outputs=("done",)),
            lambda body: bool(body.outputs),
        ),
    ),
)
