"""Program of an MCP server that the harness plays: `mcp_program.py SETTINGS SERVER WORD…`.

The agent starts it. It reports to the harness, which listens on loopback, how it was started, and
then passes lines in both directions; the harness answers them. The file SETTINGS has the port and
the key of the play, the digests of the values that the program should find in its environment, and
those of tokens that it should not find. It only reports whether they are there: no value leaves
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

CHUNK_BYTES = 64 * 1024


def main(settings_file: Path, server: str, words: list[str]) -> int:
    """Connect a server's input and output with the harness until either ends; return 0."""
    play: dict[str, Any] = json.loads(settings_file.read_text("utf-8"))
    with socket.create_connection(("127.0.0.1", play["port"])) as link:
        digests = {name: _digest(value) for name, value in os.environ.items()}
        expected: dict[str, str] = play["servers"][server]
        hello = {
            "key": play["key"],
            "server": server,
            "args": words,
            "variables": {
                name: _possession(digests.get(name), expected[name]) for name in expected
            },
            "tokens": [
                name for name, digest in play["tokens"].items() if digest in digests.values()
            ],
        }
        link.sendall(json.dumps(hello).encode() + b"\n")
        threading.Thread(target=_answers, args=(link,), daemon=True).start()
        while chunk := os.read(sys.stdin.fileno(), CHUNK_BYTES):
            link.sendall(chunk)
    return 0


def _answers(link: socket.socket) -> None:
    try:
        while chunk := link.recv(CHUNK_BYTES):
            while chunk:
                chunk = chunk[os.write(sys.stdout.fileno(), chunk) :]
    except OSError:
        pass
    finally:
        os._exit(0)  # The harness is gone; the main thread may still wait for input.


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _possession(digest: str | None, expected: str) -> str:
    if digest is None:
        return "none"
    return "same" if digest == expected else "other"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
