"""Builder of traces with approvals: a `Talk` with requests, decisions and resolutions."""

from typing import Any, Self

from tests.rules.traces import THREAD, TURN, Talk, settings, thread_object

COMMAND = "item/commandExecution/requestApproval"
FILE = "item/fileChange/requestApproval"
CWD = "/home/user/project"
TOUCH = ["bash", "-lc", "touch made.txt"]


def command_item(item: str = "call_1", status: str = "inProgress", **more: Any) -> dict[str, Any]:
    """Return a commandExecution item."""
    shows = {"command": "touch made.txt", "cwd": CWD, "commandActions": [], **more}
    return {"type": "commandExecution", "id": item, "status": status, **shows}


def file_item(
    item: str = "patch_1", status: str = "inProgress", name: str = "made.txt"
) -> dict[str, Any]:
    """Return a fileChange item that adds a file."""
    change = {"path": f"{CWD}/{name}", "kind": {"type": "add"}, "diff": "new\n"}
    return {"type": "fileChange", "id": item, "status": status, "changes": [change]}


class Approvals(Talk):
    """A talk with approvals; ids of server requests count from 0."""

    _question = -1

    def policy(self, policy: str = "untrusted") -> Self:
        """Start a thread with a policy: seqs 0 to 2."""
        self.asks("thread/start", cwd=CWD, approvalPolicy=policy)
        self.answers({"thread": thread_object(), **settings(), "approvalPolicy": policy})
        return self.tells("thread/started", thread=thread_object())

    def running(self, policy: str = "untrusted") -> Self:
        """Start a thread with a policy and a turn with the user's message: seqs 0 to 8."""
        return self.policy(policy).start_turn()

    def question(
        self, item: str = "call_1", method: str = COMMAND, turn: str = TURN, **more: Any
    ) -> Self:
        """Add an approval request for an item, with the next id."""
        self._question += 1
        params: dict[str, Any] = {"threadId": THREAD, "turnId": turn, "itemId": item}
        if method == COMMAND:
            params |= {"command": TOUCH, "cwd": CWD, "commandActions": [], "reason": "it writes"}
        return self.says({"method": method, "id": self._question, "params": {**params, **more}})

    def decides(self, decision: Any, *, to: int | None = None, **how: bool) -> Self:
        """Add the client's decision on the last approval request, or on that with the id `to`."""
        to = self._question if to is None else to
        return self.sends({"id": to, "result": {"decision": decision}}, **how)

    def resolved(self, to: int | None = None) -> Self:
        """Add serverRequest/resolved, with the params that real servers send."""
        to = self._question if to is None else to
        return self.tells("serverRequest/resolved", threadId=THREAD, requestId=to)

    def approved(
        self, status: str = "completed", item: str = "call_1", decision: str = "accept"
    ) -> Self:
        """Add the whole approval sequence of a command: 5 messages."""
        self.started(command_item(item)).question(item).decides(decision).resolved()
        return self.completed(command_item(item, status))

    def patched(
        self, status: str = "completed", decision: str = "accept", turn: str = TURN
    ) -> Self:
        """Add the approval sequence of a file change: 5 messages, and the diff if it completed."""
        self.started(file_item(), turn).question("patch_1", FILE, turn)
        self.decides(decision).resolved().completed(file_item(status=status), turn)
        if status != "completed":
            return self
        diff = "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+new\n"
        return self.tells("turn/diff/updated", threadId=THREAD, turnId=turn, diff=diff)
