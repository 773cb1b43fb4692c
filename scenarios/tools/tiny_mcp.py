"""A tiny MCP server over its standard streams: add and fail. Standard library only."""

import json
import sys

NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
TOOLS = [
    {"name": "add", "description": "Adds a and b", "inputSchema": NUMBERS},
    {"name": "fail", "description": "Always fails", "inputSchema": {"type": "object"}},
]


def called(name, arguments):
    """The result of a tool call."""
    if name == "add":
        text = f"the sum is {arguments['a'] + arguments['b']}"
        return {"content": [{"type": "text", "text": text}]}
    return {"content": [{"type": "text", "text": "it always fails"}], "isError": True}


def answered(method, params):
    """The result of a request, None for a method that there is not."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tiny", "version": "1"},
        }
    if method == "tools/call":
        return called(params["name"], params.get("arguments") or {})
    return {"ping": {}, "tools/list": {"tools": TOOLS}}.get(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answered(message["method"], message.get("params") or {})
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        answer["error"] = {"code": -32601, "message": "no such method"}
    else:
        answer["result"] = result
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
