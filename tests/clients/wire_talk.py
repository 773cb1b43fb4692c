"""A client and a server over one connection, as `ClientJudge` hears them.

Nothing of the judge's own words.
"""

import json
from typing import Any, Self

from harness.play.client_duties.live import ClientJudge
from harness.play.client_duties.verdicts import DutyVerdict

COMMAND = "item/commandExecution/requestApproval"
FILE = "item/fileChange/requestApproval"
QUESTION = {"threadId": "thr_1", "turnId": "turn_1", "itemId": "item_1"}


class Wire:
    """Messages for a judge of clients; `now` is the judge's clock, in seconds."""

    def __init__(self, connection: str = "1") -> None:
        self.now = 0.0
        self.connection = connection
        self.judge = ClientJudge("by-hand", clock=lambda: self.now)
        self._id = 0
        self.on(connection)

    def on(self, connection: str) -> Self:
        """Go on with another connection, which begins with the handshake."""
        self.connection = connection
        self.judge.open_connection(connection)
        self.asks("initialize", clientInfo={"name": "by-hand", "version": "1"}).gets()
        return self.client({"method": "initialized"})

    def client(self, message: Any) -> Self:
        """The client sends a message, or bytes."""
        self.judge.add_client_message(self.connection, _raw(message))
        return self

    def server(self, message: Any) -> Self:
        """The server sends a message, or bytes."""
        self.judge.add_server_message(self.connection, _raw(message))
        return self

    def asks(self, method: str, **params: Any) -> Self:
        """The client asks, by the next id."""
        self._id += 1
        return self.client({"method": method, "id": self._id, "params": params})

    def gets(self, **result: Any) -> Self:
        """The server answers the last request."""
        return self.server({"id": self._id, "result": result})

    def tells(self, method: str, **params: Any) -> Self:
        """The server notifies."""
        return self.server({"method": method, "params": params})

    def asked(self, identifier: Any = 0, method: str = COMMAND, **more: Any) -> Self:
        """The server asks whether something may be done."""
        said = {"command": ["ls"], "cwd": "/home/user"} if method == COMMAND else {}
        params = {**QUESTION, **said, **more}
        return self.server({"method": method, "id": identifier, "params": params})

    def decides(self, decision: Any, identifier: Any = 0) -> Self:
        """The client decides."""
        return self.client({"id": identifier, "result": {"decision": decision}})

    def opens(self, thread: str = "thr_1") -> Self:
        """thread/start and its answer."""
        return self.asks("thread/start", cwd="/home/user").gets(thread={"id": thread})

    def speaks(self, turn: str = "turn_1", thread: str = "thr_1") -> Self:
        """turn/start, its answer, and turn/started."""
        said = [{"type": "text", "text": "hello"}]
        self.asks("turn/start", threadId=thread, input=said)
        about = {"id": turn, "status": "inProgress", "items": [], "error": None}
        return self.gets(turn=about).tells("turn/started", threadId=thread, turn=about)

    def ends(self, turn: str = "turn_1", thread: str = "thr_1") -> Self:
        """turn/completed."""
        about = {"id": turn, "status": "completed", "items": [], "error": None}
        return self.tells("turn/completed", threadId=thread, turn=about)

    def verdicts(self) -> list[DutyVerdict]:
        """The verdicts at the end."""
        return self.judge.finish()

    def broken(self) -> dict[str, str]:
        """The duties that are broken, with their levels."""
        return {one.rule: one.level for one in self.verdicts() if one.verdict == "FAIL"}


def _raw(message: Any) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode()
