"""Driver that starts a fixture server, talks to it, and reaps it; every wait has a bound.

It stores every line of the server as bytes. It judges nothing and shares no code with the
harness's client.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SERVERS = Path(__file__).resolve().parents[3] / "fixtures" / "servers"
BOUND = 5.0


class Session:
    """One running server; `script` is its path below fixtures/servers, with arguments.

    `lines` are the complete lines of its output, `tail` is an unfinished last line.
    """

    def __init__(self, script: str, home: Path, model_url: str = "") -> None:
        environment = {**os.environ, "AGENT_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        environment["PROVIDER_BASE_URL"] = model_url
        self.process = subprocess.Popen(
            [sys.executable, str(SERVERS / script.split()[0]), *script.split()[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd=home,
            start_new_session=True,
        )
        self.lines: list[bytes] = []
        self.tail = b""
        self.stderr = b""
        self.closed = False
        self.changed = threading.Condition()
        self.ids = itertools.count(1)
        self.readers = [threading.Thread(target=r) for r in (self._read_out, self._read_err)]
        for reader in self.readers:
            reader.start()

    def _read_out(self) -> None:
        assert self.process.stdout
        parts: list[bytes] = []
        while data := os.read(self.process.stdout.fileno(), 1 << 20):
            first, *rest = data.split(b"\n")
            parts.append(first)
            with self.changed:
                for piece in rest:
                    self.lines.append(b"".join(parts))
                    parts = [piece]
                self.tail = b"".join(parts) if len(parts) < 3 else self.tail
                self.changed.notify_all()
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _read_err(self) -> None:
        assert self.process.stderr
        while data := os.read(self.process.stderr.fileno(), 1 << 16):
            with self.changed:
                self.stderr += data
                self.changed.notify_all()

    def until(self, predicate: Callable[[], Any]) -> bool:
        """Wait until `predicate` is true or the server closes its output; return if it is true."""
        with self.changed:
            self.changed.wait_for(lambda: predicate() or self.closed, BOUND)
            return bool(predicate())

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)

    def send(self, method: str, **params: Any) -> int:
        request_id = next(self.ids)
        line = json.dumps({"method": method, "id": request_id, "params": params})
        self.write(line.encode() + b"\n")
        return request_id

    @property
    def messages(self) -> list[Json]:
        """Return all lines that are JSON objects, except those of 1 MiB or more."""
        found: list[Any] = []
        for line in list(self.lines):
            if len(line) < 1 << 20:
                with suppress(ValueError):
                    found.append(json.loads(line))
        return [message for message in found if isinstance(message, dict)]

    def answer(self, request_id: int) -> Json:
        def found() -> list[Json]:
            return [m for m in self.messages if m.get("id") == request_id and "method" not in m]

        assert self.until(found), (self.lines, self.stderr)
        return found()[0]

    def request(self, method: str, **params: Any) -> Json:
        return self.answer(self.send(method, **params))

    def named(self, method: str) -> list[Json]:
        return [m["params"] for m in self.messages if m.get("method") == method]

    def wait(self, method: str, count: int = 1) -> Json:
        assert self.until(lambda: len(self.named(method)) >= count), (self.lines, self.stderr)
        return self.named(method)[count - 1]

    def start_thread(self, **params: Any) -> Json:
        return self.request("thread/start", **params)["result"]["thread"]

    def start_turn(self, thread: Json, text: str) -> int:
        content = [{"type": "text", "text": text}]
        return self.send("turn/start", threadId=thread["id"], input=content)

    def end(self) -> int:
        """Close stdin, read all output, and return the exit status."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.drain()

    def drain(self) -> int:
        """Wait for the end of the process and of its output; return the exit status."""
        status = self.process.wait(BOUND)
        for reader in self.readers:
            reader.join(BOUND)
        return status

    def reap(self) -> None:
        assert self.process.stdin
        with suppress(OSError):
            self.process.stdin.close()
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.drain()
        assert self.process.stdout
        assert self.process.stderr
        self.process.stdout.close()
        self.process.stderr.close()


@contextmanager
def session(script: str, home: Path, model_url: str = "") -> Generator[Session]:
    """Run a server while the block runs, then end its whole process group."""
    running = Session(script, home, model_url)
    try:
        yield running
    finally:
        running.reap()
