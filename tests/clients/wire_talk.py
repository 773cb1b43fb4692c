"""A builder of conversations between client and server for `ClientJudge`."""

import json
from typing import Any, Self

from harness.play.client_duties.live import ClientJudge
from harness.play.client_duties.verdicts import DutyVerdict

COMMAND = "item/commandExecution/requestApproval"
FILE = "item/fileChange/requestApproval"
QUESTION = {"threadId": "thr_1", "turnId": "turn_1", "itemId": "item_1"}


class Wire:
    """A conversation, fed to a `ClientJudge`; `now` is the judge's clock, in seconds.

    Methods add messages on the current connection and return the object itself.
    """

    def __init__(self, connection: str = "1") -> None:
        self.now = 0.0
        self.connection = connection
        self.judge = ClientJudge("by-hand", clock=lambda: self.now)
        self._id = 0
        self.on(connection)

    def on(self, connection: str) -> Self:
        """Open another connection, do its handshake and make it the current one."""
        self.connection = connection
        self.judge.open_connection(connection)
        self.asks("initialize", clientInfo={"name": "by-hand", "version": "1"}).gets()
        return self.client({"method": "initialized"})

    def client(self, message: Any) -> Self:
        """Add a message, or bytes, of the client."""
        self.judge.add_client_message(self.connection, _raw(message))
        return self

    def server(self, message: Any) -> Self:
        """Add a message, or bytes, of the server."""
        self.judge.add_server_message(self.connection, _raw(message))
        return self

    def asks(self, method: str, **params: Any) -> Self:
        """Add a request of the client, with the next id."""
        self._id += 1
        return self.client({"method": method, "id": self._id, "params": params})

    def gets(self, **result: Any) -> Self:
        """Add the server's response to the client's last request."""
        return self.server({"id": self._id, "result": result})

    def tells(self, method: str, **params: Any) -> Self:
        """Add a notification of the server."""
        return self.server({"method": method, "params": params})

    def asked(self, identifier: Any = 0, method: str = COMMAND, **more: Any) -> Self:
        """Add an approval request of the server."""
        said = {"command": ["ls"], "cwd": "/home/user"} if method == COMMAND else {}
        params = {**QUESTION, **said, **more}
        return self.server({"method": method, "id": identifier, "params": params})

    def decides(self, decision: Any, identifier: Any = 0) -> Self:
        """Add the client's decision."""
        return self.client({"id": identifier, "result": {"decision": decision}})

    def opens(self, thread: str = "thr_1") -> Self:
        """Add thread/start and its response."""
        return self.asks("thread/start", cwd="/home/user").gets(thread={"id": thread})

    def speaks(self, turn: str = "turn_1", thread: str = "thr_1") -> Self:
        """Add turn/start, its response, and turn/started."""
        said = [{"type": "text", "text": "hello"}]
        self.asks("turn/start", threadId=thread, input=said)
        about = {"id": turn, "status": "inProgress", "items": [], "error": None}
        return self.gets(turn=about).tells("turn/started", threadId=thread, turn=about)

    def ends(self, turn: str = "turn_1", thread: str = "thr_1") -> Self:
        """Add turn/completed."""
        about = {"id": turn, "status": "completed", "items": [], "error": None}
        return self.tells("turn/completed", threadId=thread, turn=about)

    def verdicts(self) -> list[DutyVerdict]:
        """End the conversation and return the verdicts."""
        return self.judge.finish()

    def broken(self) -> dict[str, str]:
        """End the conversation and return the broken duties with their levels."""
        return {one.rule: one.level for one in self.verdicts() if one.verdict == "FAIL"}


def _raw(message: Any) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode()
