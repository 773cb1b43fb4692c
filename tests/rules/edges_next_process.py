"""Edge cases of approvals and statuses after a restart of the server."""

from typing import Any, Self

from harness.judge.verdict import Level
from harness.trace.marks import Closed, ServerEnded
from tests.rules.approval_talk import Approvals, command_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, settings, thread_object, turn_object, user_message

RUNS, DENIED, ASKED = "approval.accepted-runs", "approval.denied-not-run", "approval.always-asked"
REMEMBERED, MATCHES = "approval.session-remembered", "status.read-matches-turns"


class Restarted(Approvals):
    """A talk with turns of one command each, and restarts of the server."""

    _turns = 0
    _clients = 1
    _stored: tuple[dict[str, Any], ...] = ()

    def command(self, decision: str = "", status: str = "completed") -> Self:
        """Add a turn with a command that ends so, asked about if there is a decision."""
        self._turns += 1
        turn, item = f"turn_{self._turns}", f"call_{self._turns}"
        self.start_turn(turn, text=f"do {self._turns}").started(command_item(item), turn)
        if decision:
            self.question(item, turn=turn).decides(decision).resolved()
        end = command_item(item, status, exitCode=0 if status == "completed" else None)
        if status == "declined":
            end.pop("exitCode")
        items = [user_message(f"{turn}-user", f"do {self._turns}"), end]
        self._stored += (turn_object(turn, "completed", items=items),)
        return self.completed(end, turn).end_turn(turn)

    def interrupts(self) -> Self:
        """Add a turn that is interrupted before its command is asked about."""
        self.start_turn("turn_2", text="do 2").started(command_item("call_2"), "turn_2")
        self.interrupt("turn_2").answers({})
        self.completed(command_item("call_2", "declined"), "turn_2")
        return self.end_turn("turn_2", status="interrupted")

    def restarts(self, policy: str = "untrusted") -> Self:
        """Add a restart, and a resume by another connection."""
        self.mark(ServerEnded(killed=False)).mark(Closed(f"c{self._clients}"))
        self._clients += 1
        self.on(f"c{self._clients}").asks("thread/resume", threadId=THREAD)
        shown = thread_object(preview="do 1", turns=list(self._stored))
        return self.answers({"thread": shown, **settings(), "approvalPolicy": policy})


def opened(policy: str = "untrusted") -> Restarted:
    """Return a talk with a thread under a policy."""
    return Restarted().policy(policy)


LEGAL: list[Legal] = [
    Legal(
        ASKED,
        "declined-unasked-for-the-first-time",
        lambda: opened("on-request").command(status="declined"),
    ),
    Legal(
        ASKED,
        "interrupted-before-it-was-asked-about",
        lambda: opened("on-request").command("decline", "declined").interrupts(),
    ),
    Legal(RUNS, "runs-after-a-restart", lambda: opened().restarts().command("accept")),
    Legal(
        ASKED,
        "allowed-in-the-process-before",
        lambda: (
            opened("on-request")
            .command("acceptWithExecpolicyAmendment")
            .restarts("on-request")
            .command()
        ),
    ),
    Legal(
        REMEMBERED,
        "asked-again-by-the-next-process",
        lambda: opened().command("acceptForSession").restarts().command("accept"),
    ),
    Legal(
        MATCHES, "idle-after-a-restart", lambda: opened().command().restarts().read_status("idle")
    ),
]

ILLEGAL: list[Illegal] = [
    Illegal(
        ASKED,
        "declined-unasked-after-a-denial",
        lambda: opened("on-request").command("decline", "declined").command(status="declined"),
    ),
    Illegal(
        ASKED,
        "declined-unasked-after-an-approval",
        lambda: opened("on-request").command("accept").command(status="declined"),
    ),
    Illegal(
        RUNS,
        "declined-after-a-restart",
        lambda: opened().restarts().command("accept", "declined"),
    ),
    Illegal(
        RUNS,
        "declined-after-two-restarts",
        lambda: opened().command("accept").restarts().restarts().command("accept", "declined"),
    ),
    Illegal(DENIED, "run-after-a-restart", lambda: opened().restarts().command("decline")),
    Illegal(
        ASKED,
        "unasked-after-a-restart",
        lambda: opened("on-request").command("accept").restarts("on-request").command(),
    ),
    Illegal(
        REMEMBERED,
        "forgotten-by-the-next-process",
        lambda: opened().restarts().command("acceptForSession").command("accept"),
    ),
    Illegal(
        MATCHES,
        "active-after-a-restart",
        lambda: opened().restarts().start_thread("thr_2").read_status("active", "thr_2"),
        Level.SHOULD,
        also=frozenset({"status.change-notified"}),
    ),
]
