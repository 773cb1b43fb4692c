"""Faults of what passes between an agent and the MCP servers that the harness plays.

Most of them change marks: what a server gets is no message between a client and an agent.
"""

import dataclasses
from collections.abc import Callable

from harness.faults import stored
from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.changes import first
from harness.faults.item_selectors import item_completed
from harness.faults.operators import edit
from harness.faults.site import FaultSite
from harness.trace.marks import MarkBody, McpAsked, ModelCall
from harness.trace.mcp_marks import Held, McpConfigured, McpRequest, McpStarted, McpVariable
from harness.trace.trace import B, Mark, Trace

WHY = "what a server gets is no message, and those are marks"


def marked(body: type[B], how: Callable[[B], B], fits: Callable[[B], bool]) -> StoredOnly:
    """The marks of a class that fit, changed; there must be one."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        found = [mark for mark in trace.marks_of(body) if fits(mark.body)]
        if not found:
            raise NotApplied(f"no mark {body.kind} that fits")
        return stored.remark(trace, found, how)

    return StoredOnly(WHY, make)


def never_called(_: FaultSite, trace: Trace) -> Trace:
    """No server got a call of a tool."""

    def calls(mark: Mark[MarkBody]) -> bool:
        return isinstance(mark.body, McpRequest) and mark.body.method == "tools/call"

    if not any(map(calls, trace.marks)):
        raise NotApplied("no call of a tool of a server")
    return stored.unmark(trace, calls)


def offered_though_off(_: FaultSite, trace: Trace) -> Trace:
    """The model is offered the tools of a server that is not enabled."""
    off = [
        McpAsked(mark.body.server, tool)
        for mark in trace.marks_of(McpConfigured)
        for tool in mark.body.tools
        if not mark.body.enabled
    ]
    calls = [mark for mark in trace.marks_of(ModelCall) if mark.body.offered]
    if not off or not calls:
        raise NotApplied("no server that is not enabled beside one whose tools are offered")
    return stored.remark(
        trace, calls, lambda one: dataclasses.replace(one, offered=(*one.offered, *off))
    )


def _is_call(one: McpRequest) -> bool:
    return one.method == "tools/call"


FAULTS: tuple[Fault, ...] = (
    Fault(
        "mcp-server-args-joined",
        rule="mcp-server.arguments",
        on="mcp-played",
        reason="The args of a stdio server are the arguments of its program.",
        change=marked(
            McpStarted,
            lambda one: dataclasses.replace(one, args=tuple(" ".join(one.args).split(" "))),
            lambda one: any(" " in word for word in one.args),
        ),
    ),
    Fault(
        "mcp-server-without-env",
        rule="mcp-server.environment",
        on="mcp-played",
        reason="The env of a stdio server is the environment that its program has.",
        change=marked(
            McpStarted,
            lambda one: dataclasses.replace(
                one, variables=tuple(McpVariable(v.name, Held.NONE) for v in one.variables)
            ),
            lambda one: bool(one.variables),
        ),
    ),
    Fault(
        "mcp-server-inherits-token",
        rule="mcp-server.no-credentials",
        on="mcp-played",
        reason="A stdio server receives credentials only through its env entries.",
        change=marked(
            McpStarted,
            lambda one: dataclasses.replace(one, tokens=("DOCS_BEARER",)),
            lambda one: not one.tokens,
        ),
    ),
    Fault(
        "mcp-server-token-not-sent",
        rule="mcp-server.bearer-token",
        on="mcp-played",
        reason="The bearer token is read from the variable that the configuration names.",
        change=marked(
            McpRequest,
            lambda one: dataclasses.replace(one, token=Held.NONE),
            lambda one: one.token is Held.SAME,
        ),
    ),
    Fault(
        "mcp-server-off-and-offered",
        rule="mcp-server.enabled-only",
        on="mcp-played",
        reason="A server that is not enabled gives the agent no tools.",
        change=StoredOnly(WHY, offered_though_off),
    ),
    Fault(
        "mcp-server-never-called",
        rule="mcp-server.called",
        on="mcp-played",
        reason="A stdio server is spoken to over its standard streams, another one over HTTP.",
        change=StoredOnly(WHY, never_called),
    ),
    Fault(
        "mcp-server-given-other-arguments",
        rule="mcp-server.call-arguments",
        on="mcp-played",
        reason="A tool gets the arguments that its call has.",
        change=marked(
            McpRequest, lambda one: dataclasses.replace(one, arguments='{"a": "2"}'), _is_call
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
        change=marked(
            ModelCall,
            lambda one: dataclasses.replace(one, outputs=("done",)),
            lambda one: bool(one.outputs),
        ),
    ),
)
