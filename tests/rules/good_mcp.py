"""Good conversations with MCP servers that the harness plays, for `good_traces`."""

import json
from collections.abc import Callable
from typing import Any

from harness.trace.marks import CallEnd, McpToolCall, ModelEnd
from harness.trace.mcp_marks import (
    McpAnswer,
    McpConfigured,
    McpRequest,
    McpStarted,
    McpTransport,
    McpVariable,
    Possession,
)
from harness.trace.trace import Trace
from tests.rules.streams import StreamTalk
from tests.rules.traces import Talk, mcp_call

STDIO, HTTP = McpTransport.STDIO, McpTransport.HTTP
NUMBERS = {"a": 2, "b": 3}
SAID = "the sum is 5"
TINY = McpConfigured(
    server="tiny",
    transport=STDIO,
    tools=("add",),
    args=("--colour", "a b"),
    variables=("SKY",),
)
DOCS = McpConfigured(server="docs", transport=HTTP, tools=("find",), token="DOCS_BEARER")
SKY = McpVariable("SKY", Possession.SAME)
OFF = McpConfigured(server="off", transport=STDIO, enabled=False, tools=("stop",))
ADD = McpToolCall("tiny", "add")
STARTED = McpStarted(server="tiny", args=TINY.args, variables=(SKY,))
RESULT = {"content": [{"type": "text", "text": SAID}], "structuredContent": None}


def request(number: int, method: str, server: str = "tiny", **more: Any) -> McpRequest:
    """A request that a server got; one at an address has the token, unless `more` says else."""
    if server == "docs":
        more = {"token": Possession.SAME, **more}
    way = HTTP if server == "docs" else STDIO
    return McpRequest(number=number, server=server, transport=way, method=method, **more)


def add(number: int = 3, **arguments: Any) -> McpRequest:
    """The call of `add` with its arguments."""
    return request(number, "tools/call", tool="add", arguments=json.dumps(arguments or NUMBERS))


def asked(call: int = 1, **arguments: Any) -> ModelEnd:
    """The model called `add` with these arguments."""
    wanted = McpToolCall("tiny", "add", json.dumps(arguments or NUMBERS))
    return ModelEnd(call=call, outcome=CallEnd.COMPLETED, tools=1, mcp=(wanted,), usage=20)


def both() -> Talk:
    """A turn in which the model calls a tool of a program; a server at an address is there too."""
    talk = Talk("mcp-played").mark(TINY).mark(DOCS).mark(OFF).start_thread().start_turn()
    talk.mark(STARTED).mark(request(1, "initialize")).mark(request(2, "tools/list"))
    talk.mark(request(4, "initialize", "docs")).mark(request(5, "tools/list", "docs"))
    return talk.calls("hello", offered=(ADD,)).mark(asked()).usage()


def mcp_played() -> Trace:
    """The call, its result for the client, and the model's next call, which has it."""
    talk = both().started(mcp_call("t-1", arguments=NUMBERS))
    talk.mark(add()).mark(McpAnswer(number=3, texts=(SAID,)))
    talk.completed(mcp_call("t-1", "completed", arguments=NUMBERS, result=RESULT))
    talk.calls("hello", call=2, outputs=(f"Output: {SAID}",))
    talk.ends(2, usage=20, texts=[{"text": "Five.", "phase": ""}])
    return talk.message("m-1", "Five.").usage().end_turn().trace()


def exec_mcp_played() -> Trace:
    """The same as the events of one process."""
    talk = StreamTalk("mcp-played@exec").mark(TINY).mark(DOCS).mark(OFF).process().opens()
    talk.mark(STARTED).mark(request(1, "initialize")).mark(request(2, "initialize", "docs"))
    talk.calls("hello", offered=(ADD,)).mark(asked())
    item: dict[str, Any] = {"id": "i-1", "type": "mcp_tool_call", "server": "tiny", "tool": "add"}
    item |= {"arguments": NUMBERS, "result": None, "error": None, "status": "in_progress"}
    talk.started(item).mark(add()).mark(McpAnswer(number=3, texts=(SAID,)))
    done = {"result": {"content": RESULT["content"], "structured_content": None}}
    talk.completed({**item, **done, "status": "completed"})
    talk.calls("hello", outputs=(SAID,)).answers("Five.")
    message = {"id": "i-2", "type": "agent_message", "text": "Five."}
    return talk.completed(message).done().trace()


MCP: dict[str, Callable[[], Trace]] = {
    "mcp-played": mcp_played,
    "exec-mcp-played": exec_mcp_played,
}
