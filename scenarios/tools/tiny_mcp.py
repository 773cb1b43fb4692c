"""A tiny MCP server over its standard streams, for scenarios. Standard library only.

Its first argument, if it has one, is its name, which the tool `name` gives. Each call has a thread
of its own, so that one that waits holds up no other.
"""

import json
import os
import sys
import threading
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# A picture of four pixels.
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEklEQVR4nGP4z8DAAMIM/4EAAB/uBfsL2WiLAAAAAElF"
    "TkSuQmCC"
)
NUMBERS = {"a": {"type": "number"}, "b": {"type": "number"}}
WORD = {"type": "string"}
TOOLS = {
    "add": ("Adds a and b", NUMBERS),
    "fail": ("Always fails", {}),
    "name": ("Says which server this is", {}),
    "variable": ("Gives an environment variable", {"of": WORD}),
    "picture": ("Gives a picture and a word", {}),
    "weather": ("Gives an object with members", {}),
    "steps": ("Works in two steps and tells of each", {}),
    "wait": (
        "Writes to one pipe beside this file, then reads from another",
        {"at": WORD, "for": WORD},
    ),
    "die": ("Ends this server", {}),
}
writing = threading.Lock()
cancelled = set()


def send(message):
    """Write a message as one line."""
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def said(text, **more):
    """The result of a tool that says something."""
    return {"content": [{"type": "text", "text": text}], **more}


def tell_progress(token, done):
    """Tell how far a call is, if the client has asked for that."""
    if token is not None:
        told = {"progressToken": token, "progress": done, "total": 2, "message": f"step {done}"}
        send({"method": "notifications/progress", "params": told})


def called(name, arguments, token):
    """The result of a tool call."""
    if name == "add":
        return said(f"the sum is {arguments['a'] + arguments['b']}")
    if name == "fail":
        return said("it always fails", isError=True)
    if name == "name":
        return said(f"this is the server {(sys.argv[1:] or ['tiny'])[0]}")
    if name == "variable":
        variable = arguments["of"]
        return said(f"{variable} is {os.environ.get(variable, 'not set')}")
    if name == "picture":
        result = said("four pixels")
        picture = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
        result["content"].append(picture)
        return result
    if name == "weather":
        weather = {"sky": "overcast", "degrees": 11}
        return said(json.dumps(weather), structuredContent=weather)
    if name == "steps":
        tell_progress(token, 1)
        tell_progress(token, 2)
        return said("both steps are done")
    if name == "wait":
        tell_progress(token, 1)
        (FOLDER / arguments["at"]).write_text("here\n")
        with (FOLDER / arguments["for"]).open() as pipe:
            pipe.readline()
        return said("it waited")
    if name == "die":
        os._exit(1)
    return said(f"there is no tool {name}", isError=True)


def answered(method, params):
    """The result of a request, None for a method that there is not."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tiny", "version": "1"},
        }
    if method == "tools/call":
        token = params.get("_meta", {}).get("progressToken")
        return called(params["name"], params.get("arguments") or {}, token)
    if method == "tools/list":
        return {
            "tools": [
                {
                    "name": name,
                    "description": description,
                    "inputSchema": {"type": "object", "properties": members},
                }
                for name, (description, members) in TOOLS.items()
            ]
        }
    return {} if method == "ping" else None


def answer(request):
    """Carry a request out and answer it, unless it was cancelled meanwhile."""
    result = answered(request["method"], request.get("params") or {})
    if request["id"] in cancelled:
        return
    if result is None:
        send({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
    else:
        send({"id": request["id"], "result": result})


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        cancelled.add(message["params"].get("requestId"))
    elif "id" in message and "method" in message:
        threading.Thread(target=answer, args=[message], daemon=True).start()
