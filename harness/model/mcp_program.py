"""The program of an MCP server that the harness plays: `mcp_program.py TOLD SERVER WORD…`.

The agent starts it. It tells the harness, which listens on loopback, how it was started, and then
passes lines on in both directions; what is answered the harness says. The file TOLD has the port
and the key of the play, the digests of the values that the program should find in its environment,
and those of tokens that it should not find. Only whether they are there is told: no value leaves
this process. Standard library only: it runs in whatever environment the agent gives it.
"""

import hashlib
import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

CHUNK = 64 * 1024


def main(told: Path, server: str, words: list[str]) -> int:
    """Speak for a server until its input ends, or the play does."""
    play: dict[str, Any] = json.loads(told.read_text("utf-8"))
    with socket.create_connection(("127.0.0.1", play["port"])) as link:
        digests = {name: _digest(value) for name, value in os.environ.items()}
        expected: dict[str, str] = play["servers"][server]
        hello = {
            "key": play["key"],
            "server": server,
            "args": words,
            "variables": {name: _held(digests.get(name), expected[name]) for name in expected},
            "tokens": [name for name, one in play["tokens"].items() if one in digests.values()],
        }
        link.sendall(json.dumps(hello).encode() + b"\n")
        threading.Thread(target=_answers, args=(link,), daemon=True).start()
        while chunk := os.read(sys.stdin.fileno(), CHUNK):
            link.sendall(chunk)
    return 0


def _answers(link: socket.socket) -> None:
    try:
        while chunk := link.recv(CHUNK):
            while chunk:
                chunk = chunk[os.write(sys.stdout.fileno(), chunk) :]
    except OSError:
        pass
    finally:
        os._exit(0)  # Nobody answers any more: the main thread may wait for input.


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _held(found: str | None, expected: str) -> str:
    if found is None:
        return "none"
    return "same" if found == expected else "other"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
