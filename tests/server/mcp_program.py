"""An MCP server over its standard streams whose tools misbehave on demand. Standard library only.

    mcp_program.py [--start hang|die|junk|modern] [--log FILE]

Every message that it receives is appended to FILE.
"""

import argparse
import base64
import json
import os
import subprocess
import sys
from pathlib import Path

OBJECT = {"type": "object", "properties": {}}
CALLS = (
    "echo", "environment", "silent", "die", "progress", "junk", "long", "image", "structured",
    "mixed", "more", "ask", "error", "child", "half", "deaf", "wrong", "stubborn", "flood",
    "complain", "process", "nosy", "folder", "raw",
)  # fmt: skip
tools = [{"name": name, "inputSchema": OBJECT} for name in CALLS]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def progress(params, done, **more):
    token = params["_meta"]["progressToken"]
    given = {"progressToken": token, "progress": done, **more}
    send({"method": "notifications/progress", "params": given})


def call(number, params):
    """Return the result of a tool call, None to send no answer."""
    arguments = params.get("arguments") or {}
    match params["name"]:
        case "echo":
            return text(json.dumps(arguments))
        case "environment":
            return text(json.dumps(dict(os.environ)))
        case "silent":
            return None
        case "die":
            sys.stderr.write("out of cheese\n")
            sys.stderr.flush()
            os._exit(3)
        case "progress":
            progress(params, 1, total=3, message="one")
            progress(params, 2, total=3)
            progress(params, 3)
            return text("done")
        case "flood":
            for at in range(arguments["count"]):
                progress(params, at, message="x" * 5_000)
            return text("done")
        case "junk":
            sys.stdout.write("Listening…\n[1, 2\n\n{}\n" + "[" * 100_000 + "\n")
            return text("after junk")
        case "long":
            return text("x" * arguments["size"])
        case "image":
            return {
                "content": [{"type": "image", "mimeType": "image/png", "data": arguments["data"]}]
            }
        case "structured":
            return {"content": [], "structuredContent": {"five": 5}}
        case "mixed":
            sound = base64.b64encode(b"la la la").decode()
            return {
                "content": [
                    {"type": "text", "text": "a sound:"},
                    {"type": "audio", "mimeType": "audio/wav", "data": sound},
                    {"type": "resource_link", "uri": "file:///x", "name": "x"},
                    {"type": "resource", "resource": {"uri": "file:///y", "text": "inside"}},
                ]
            }
        case "more":
            tools.append({"name": "late", "inputSchema": OBJECT})
            send({"method": "notifications/tools/list_changed"})
            return text("there is one more")
        case "late":
            return text("better than never")
        case "ask":
            asked = {"messages": [], "maxTokens": 1}
            send({"id": "mine", "method": "sampling/createMessage", "params": asked})
            answer = json.loads(sys.stdin.readline())
            return text(json.dumps(answer["error"]["message"]))
        case "error":
            send({"id": number, "error": {"code": -32603, "message": "no cheese"}})
            return None
        case "child":
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            return text(str(child.pid))
        case "stubborn":
            import signal

            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.close(0)
            send({"id": number, "result": text(str(os.getpid()))})
            signal.pause()
        case "half":
            sys.stdout.write('{"jsonrpc": "2.0", "id": ')
            sys.stdout.flush()
            os._exit(0)
        case "deaf":
            send({"id": number, "result": text("I hear nothing more")})
            import signal

            signal.pause()
        case "nosy":
            for at in range(20_000):
                send({"id": f"mine {at}", "method": "ping"})
            return text("enough")
        case "folder":
            return text(os.getcwd())
        case "raw":
            structured = f'{{"it": {arguments["raw"]}}}'
            result = f'{{"content": [], "structuredContent": {structured}}}'
            sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {number}, "result": {result}}}\n')
            sys.stdout.flush()
            return None
        case "process":
            return text(str(os.getpid()))
        case "complain":
            for at in range(arguments.get("count", 1)):
                sys.stderr.write(f"{at}: {os.environ.get('ODD_API_KEY')}\n")
            sys.stderr.flush()
            return text("said")
        case "wrong":
            return {"content": "no list"}
        case _:
            return None


def answer(message):
    number, params = message.get("id"), message.get("params") or {}
    match message.get("method"):
        case "initialize" if options.start == "modern":
            send({"id": number, "error": {"code": -32601, "message": "that is history"}})
        case "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "program", "version": "1"},
            }
            send({"id": number, "result": result})
        case "server/discover":
            result = {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "resultType": "complete",
                "ttlMs": 0,
                "cacheScope": "public",
            }
            send({"id": number, "result": result})
        case "tools/list":
            more = (
                {}
                if options.start != "modern"
                else {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
            )
            send({"id": number, "result": {"tools": tools, **more}})
        case "tools/call":
            if (result := call(number, params)) is not None:
                if options.start == "modern":
                    result |= {"resultType": "complete"}
                send({"id": number, "result": result})
        case _:
            pass


parser = argparse.ArgumentParser()
parser.add_argument("--start", default="")
parser.add_argument("--log", type=Path)
parser.add_argument("--tools", type=Path)
options = parser.parse_args()
if options.tools:
    tools += json.loads(options.tools.read_text())
if options.start == "die":
    sys.stderr.write("no licence\n")
    sys.exit(7)
if options.start == "junk":
    sys.stdout.write("Welcome to the program!\n")
for line in sys.stdin:
    if options.log:
        with options.log.open("a") as log:
            log.write(line)
    if options.start != "hang":
        answer(json.loads(line))
