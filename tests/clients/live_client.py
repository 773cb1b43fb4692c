"""A small client of a process `agent app-server`, whose messages a `ClientJudge` judges."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from harness.play.client_duties.live import ClientJudge
from tests.agent_process import AgentProcess
from tests.processes import BOUND, ENVIRONMENT, MARK, ROOT

SCENARIO = ROOT / "fixtures" / "clients" / "odd.scenario.yaml"
Message = dict[str, Any]


class LiveClient:
    """One connection; `seen` are messages that were read and not yet returned."""

    def __init__(self, server: subprocess.Popen[bytes], folder: Path) -> None:
        self.folder = folder
        self._server = server
        self._ahead = 0.0
        self.judge = ClientJudge("odd", clock=lambda: time.monotonic() + self._ahead)
        self.judge.open_connection("1")
        self.seen: list[Message] = []
        self._next = 0

    def sends(self, message: Any) -> Self:
        """Write one line: a message, or bytes."""
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.judge.add_client_message("1", raw)
        assert self._server.stdin is not None
        self._server.stdin.write(raw + b"\n")
        self._server.stdin.flush()
        return self

    def asks(self, method: str, identifier: Any = None, **params: Any) -> Any:
        """Send a request and return its id."""
        self._next += 1
        given = self._next if identifier is None else identifier
        self.sends({"method": method, "id": given, "params": params})
        return given

    def until(self, fits: Callable[[Message], bool]) -> Message:
        """Return the first message for which `fits` is true, reading more if necessary.

        Fails if the server's output ends first.
        """
        for message in self.seen:
            if fits(message):
                self.seen.remove(message)
                return message
        assert self._server.stdout is not None
        for line in self._server.stdout:
            self.judge.add_server_message("1", line.rstrip(b"\n"))
            message = json.loads(line)
            if fits(message):
                return message
            self.seen.append(message)
        raise AssertionError(f"it never came; what came: {self.seen}")

    def answer(self, identifier: Any) -> Message:
        """Return the response to a request."""
        return self.until(lambda one: "method" not in one and one.get("id") == identifier)

    def told(self, method: str) -> Message:
        """Return the next notification or server request of a method."""
        return self.until(lambda one: one.get("method") == method)

    def later(self, seconds: float) -> Self:
        """Advance the judge's clock."""
        self._ahead += seconds
        return self

    def greets(self) -> Self:
        """Do the handshake."""
        self.answer(self.asks("initialize", clientInfo={"name": "odd", "version": "1"}))
        return self.sends({"method": "initialized", "params": {}})

    def starts(self) -> str:
        """Do the handshake and start a thread with approvals; return the thread's id."""
        self.greets()
        asked = self.asks("thread/start", cwd=str(self.folder), approvalPolicy="untrusted")
        return str(self.answer(asked)["result"]["thread"]["id"])

    def speaks(self, thread: str, identifier: Any = None) -> Any:
        """Send turn/start with a text; return the id of the request."""
        said = [{"type": "text", "text": "go on"}]
        return self.asks("turn/start", identifier, threadId=thread, input=said)

    def findings(self) -> dict[str, str]:
        """Close the connection; return the broken duties with their levels."""
        self.judge.close_connection("1")
        return {
            one.rule: one.level
            for one in self.judge.finish()
            if one.verdict != "PASS" and one.verdict != "NOT_EXERCISED"
        }


@contextmanager
def live_client(folder: Path) -> Generator[LiveClient]:
    """Yield a client with a server of its own, which is killed afterwards."""
    home = folder / "home"
    home.mkdir()
    server = AgentProcess(
        [sys.executable, "-m", "reference_server", "app-server", "--scenario", str(SCENARIO)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**ENVIRONMENT, "AGENT_HOME": str(home), MARK: str(folder)},
    )
    bound = threading.Timer(BOUND, server.kill)
    bound.start()
    try:
        yield LiveClient(server, folder)
    finally:
        bound.cancel()
        assert server.stdin is not None
        server.stdin.close()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        assert server.stdout is not None
        server.stdout.close()
