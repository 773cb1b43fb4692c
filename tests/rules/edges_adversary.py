"""Edge cases that a rule's author missed: other clients, and one that leaves and returns."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.approval_talk import CWD, Approvals, command_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import (
    THREAD,
    TROUBLE,
    TURN,
    agent_message,
    command,
    mcp_call,
    settings,
    stored_plain_turn,
    thread_object,
    turn_object,
    user_message,
)

OUTPUT = "item/commandExecution/outputDelta"
ACTIVE = {"type": "active", "activeFlags": []}


class Two(Approvals):
    """A talk of two clients of one thread; `both` writes to each what all subscribers are told."""

    def opened(self, policy: str = "never") -> "Two":
        """The first started the thread, the second resumed it; the first goes on."""
        self.policy(policy).on("c2")
        return self.resumes(policy=policy).on("c1")

    def resumes(self, *turns: dict[str, Any], policy: str = "never", **shown: Any) -> "Two":
        """thread/resume and its answer."""
        self.asks("thread/resume", threadId=THREAD)
        thread = thread_object(turns=list(turns), **shown)
        return self.answers({"thread": thread, **settings(), "approvalPolicy": policy})

    def leaves(self) -> "Two":
        """thread/unsubscribe by one of several subscribers."""
        return self.asks("thread/unsubscribe", threadId=THREAD).answers({"status": "unsubscribed"})

    def comes_back(self, *turns: dict[str, Any]) -> "Two":
        """thread/resume while a turn runs."""
        return self.resumes(*turns, preview="hello", status=ACTIVE)

    def both(self, *notifications: tuple[str, dict[str, Any]]) -> "Two":
        """Notifications to both clients; the first goes on."""
        for connection in ("c2", "c1"):
            for method, params in notifications:
                self.on(connection).tells(method, threadId=THREAD, **params)
        return self

    def begun(self, turn: str = TURN, **params: Any) -> "Two":
        """turn/start of the client whose move it is, and what both are told of it."""
        return (
            self.ask_turn(**params)
            .reply_turn(turn)
            .both(
                ("thread/status/changed", {"status": ACTIVE}),
                ("turn/started", {"turn": turn_object(turn)}),
                *whole(user_message(f"{turn}-user", "hello"), turn),
            )
        )

    def ended(self, turn: str = TURN, status: str = "completed") -> "Two":
        """The end of the turn for both."""
        return self.both(
            ("thread/status/changed", {"status": {"type": "idle"}}),
            ("turn/completed", {"turn": turn_object(turn, status)}),
        )


def begins(item: dict[str, Any], turn: str = TURN) -> tuple[str, dict[str, Any]]:
    """item/started for `both`."""
    return ("item/started", {"turnId": turn, "item": item})


def completes(item: dict[str, Any], turn: str = TURN) -> tuple[str, dict[str, Any]]:
    """item/completed for `both`."""
    return ("item/completed", {"turnId": turn, "item": item})


def whole(item: dict[str, Any], turn: str = TURN) -> list[tuple[str, dict[str, Any]]]:
    """An item that begins and is completed, for `both`."""
    return [begins(item, turn), completes(item, turn)]


def piece(item: str, delta: str, method: str = "item/agentMessage/delta") -> Any:
    """A delta for `both`."""
    return (method, {"turnId": TURN, "itemId": item, "delta": delta})


def change(name: str, status: str = "completed") -> dict[str, Any]:
    """A fileChange item that adds a file."""
    made = [{"path": f"{CWD}/{name}", "kind": {"type": "add"}, "diff": "new\n"}]
    return {"type": "fileChange", "id": f"patch-{name}", "status": status, "changes": made}


def added(*names: str) -> tuple[str, dict[str, Any]]:
    """turn/diff/updated for `both`."""
    diff = "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+new\n" for name in names)
    return ("turn/diff/updated", {"turnId": TURN, "diff": diff})


def rolled_back_by_another() -> Two:
    talk = Two().opened().begun().both(*whole(agent_message("m", "Yes."))).ended()
    talk.on("c2").asks("thread/rollback", threadId=THREAD, numTurns=1)
    talk.answers({"thread": thread_object(turns=[])}).on("c1")
    talk.asks("thread/read", threadId=THREAD, includeTurns=True)
    return talk.answers({"thread": thread_object(turns=[])})


def rolled_back_by_a_client_that_came_later() -> Two:
    talk = Two().opened().leaves().on("c2").leaves().on("c1").resumes().plain_turn()
    talk.on("c3").resumes(stored_plain_turn(), preview="hello").asks(
        "thread/rollback", thread=THREAD, turns=5
    )
    talk.answers({"thread": thread_object(turns=[])}).on("c1")
    for include in (False, True):
        talk.asks("thread/read", threadId=THREAD, includeTurns=include)
        turns: dict[str, Any] = {"turns": []} if include else {}
        talk.answers({"thread": thread_object(**turns)})
    return talk


def moved_by_another() -> Two:
    talk = Two().opened().on("c2").begun(cwd="/home/user/other")
    item = command("c-1", cwd="/home/user/other")
    talk.both(begins(item), completes({**item, "status": "completed"})).ended()
    talk.asks("thread/read", threadId=THREAD)
    return talk.answers({"thread": thread_object(preview="hello", cwd="/home/user/other")})


def moved_by_another_and_listed() -> Two:
    talk = Two().opened().begun().both(*whole(agent_message("m", "Yes."))).ended()
    talk.on("c2").begun("turn_2", cwd="/srv").ended("turn_2").asks("thread/list")
    shown = thread_object(preview="hello", cwd="/srv", status={"type": "notLoaded"})
    return talk.answers({"data": [shown], "nextCursor": None})


def came_back_in_the_middle_of_a_turn() -> Two:
    talk = Two().opened().leaves().on("c2").ask_turn().reply_turn().status("active").turn_started()
    talk.item(user_message("u", "hello")).started(agent_message("m", "")).delta("m", "Y")
    talk.on("c1").comes_back()
    return talk.both(piece("m", "es."), completes(agent_message("m", "Yes."))).ended()


def came_back_for_the_end_of_a_turn() -> Two:
    talk = Two().opened().begun().both(*whole(agent_message("m", "Yes."))).ended().leaves()
    talk.on("c2").ask_turn(text="and?").reply_turn("turn_2").status("active").turn_started("turn_2")
    said = [user_message("u", "hello"), agent_message("m", "Yes.")]
    talk.on("c1").comes_back(turn_object(status="completed", items=said))
    return talk.ended("turn_2", "interrupted")


def away_when_a_command_began() -> Two:
    talk = (
        Two()
        .opened()
        .begun()
        .leaves()
        .on("c2")
        .started(command("c-1"))
        .delta("c-1", "one\n", method=OUTPUT)
    )
    talk.on("c1").comes_back().both(piece("c-1", "two\n", OUTPUT))
    done = command("c-1", "completed", exitCode=0, aggregatedOutput="one\ntwo\n")
    return talk.both(completes(done)).ended()


def away_when_a_message_began() -> Two:
    talk = Two().opened().begun().both(*whole(agent_message("m-1", "Well."))).leaves()
    talk.on("c2").started(agent_message("m-2", "")).on("c1").comes_back()
    return talk.both(piece("m-2", "Yes."), completes(agent_message("m-2", "Yes."))).ended()


def away_when_a_file_change_began() -> Two:
    talk = Two().opened().begun().leaves().on("c2").started(change("a.txt", "inProgress"))
    return talk.on("c1").comes_back().both(completes(change("a.txt")), added("a.txt")).ended()


def away_when_a_tool_was_called() -> Two:
    talk = Two().opened().begun().both(*whole(agent_message("m", "Well."))).leaves().on("c2")
    talk.started(mcp_call("t")).on("c1").comes_back()
    return talk.both(completes(mcp_call("t", "completed", result={"content": []}))).ended()


def away_for_a_delta() -> Two:
    talk = Two().opened().begun().both(begins(agent_message("m", "")), piece("m", "No, "))
    talk.leaves().on("c2").delta("m", "not ").on("c1").comes_back()
    return talk.both(piece("m", "yet."), completes(agent_message("m", "No, not yet."))).ended()


def away_for_all_but_the_first_delta() -> Two:
    talk = Two().opened().on("c2").begun().both(begins(agent_message("m", "")), piece("m", "N"))
    talk.leaves().on("c2").delta("m", "o").delta("m", ".").on("c1").comes_back()
    return talk.both(completes(agent_message("m", "No."))).ended()


def away_for_the_diff() -> Two:
    talk = Two().opened().begun().both(begins(change("a.txt", "inProgress")))
    talk.both(completes(change("a.txt"))).leaves().on("c2")
    talk.tells(added("a.txt")[0], threadId=THREAD, **added("a.txt")[1])
    return talk.on("c1").comes_back().both(*whole(agent_message("m", "Done."))).ended()


def away_for_the_last_diff() -> Two:
    talk = Two().opened().on("c2").begun().both(begins(change("a.txt", "inProgress")))
    talk.both(completes(change("a.txt")), added("a.txt"), begins(change("b.txt", "inProgress")))
    talk.both(completes(change("b.txt"))).leaves().on("c2")
    talk.tells(added()[0], threadId=THREAD, **added("a.txt", "b.txt")[1])
    return talk.on("c1").comes_back().ended()


def interrupted_call() -> Approvals:
    talk = Approvals().start_thread().start_turn().started(mcp_call("t")).interrupt().answers({})
    return talk.completed(mcp_call("t", "failed")).end_turn(status="interrupted")


def call_beside_a_cancelled_command() -> Approvals:
    talk = Approvals().running().started(mcp_call("t")).started(command_item()).question()
    talk.decides("cancel").resolved().completed(command_item(status="declined"))
    return talk.completed(mcp_call("t", "failed", error=None)).end_turn(status="interrupted")


def a_title_is_written_meanwhile() -> Approvals:
    talk = Approvals().start_thread().start_turn().calls("hello").calls("a title", call=2, step=-1)
    talk.ends().read_status("idle").ends(2).message("m", "Yes.")
    return talk.end_turn()


def a_second_title_is_written_meanwhile() -> Approvals:
    talk = Approvals().start_thread().start_turn().calls("a title", step=-1).calls("hello", call=2)
    talk.ends(2, tools=1).item(command("c-1", "completed")).calls("hello", call=3).ends(3)
    talk.read_status("idle").ends(1).item(agent_message("m", "Yes."))
    return talk.end_turn()


def progress_of_a_call_of_another() -> Two:
    talk = Two().start_thread().on("c2")
    talk.tells("item/mcpToolCall/progress", threadId=THREAD, itemId="t", message="half")
    return talk.on("c1").plain_turn()


def progress_on_a_thread_of_nobody_here() -> Approvals:
    talk = Approvals().start_thread().start_turn()
    talk.tells("item/mcpToolCall/progress", threadId="thr_8", itemId="t", message="half")
    return talk.message("m", "Yes.").end_turn()


def another_model_of_another_provider() -> Two:
    talk = Two().opened().on("c2").begun(model="far-model").ended()
    talk.asks("thread/read", threadId=THREAD)
    return talk.answers({"thread": thread_object(preview="hello", modelProvider="far")})


def resumed_elsewhere_with_another_provider() -> Two:
    talk = Two().start_thread().plain_turn().on("c2")
    talk.resumes(stored_plain_turn(), preview="hello", modelProvider="far").on("c1")
    shown = thread_object(preview="hello", modelProvider="far", status={"type": "notLoaded"})
    return talk.asks("thread/list").answers({"data": [shown], "nextCursor": None})


def asked_again(talk: Approvals) -> Approvals:
    """The same command once more, in a second turn."""
    talk.start_turn("turn_2", text="again").started(command_item("call_2"), "turn_2")
    talk.question("call_2", turn="turn_2").decides("accept").resolved()
    return talk.completed(command_item("call_2", "completed"), "turn_2").end_turn("turn_2")


def session_answer_met_an_interrupt() -> Approvals:
    talk = Approvals().running().started(command_item()).question().interrupt()
    talk.decides("acceptForSession").answers({}).resolved()
    talk.completed(command_item(status="failed"))
    return asked_again(talk.end_turn(status="interrupted"))


def session_answer_met_a_failure() -> Approvals:
    talk = Approvals().running().started(command_item()).question().failing(will_retry=False)
    talk.decides("acceptForSession").resolved().completed(command_item(status="failed"))
    return asked_again(talk.end_turn(status="failed", error=TROUBLE))


def network_denied(**asked: Any) -> Approvals:
    """A command that goes on without the network that it was denied."""
    item = command_item(command="curl example.org || echo offline")
    talk = Approvals().running().started(item).question(**asked).decides("decline").resolved()
    talk.completed({**item, "status": "completed", "exitCode": 0, "aggregatedOutput": "offline\n"})
    return talk.message("m", "Offline.").end_turn()


def told_diff(diff: str, *names: str) -> Approvals:
    """A turn that adds files one by one, and tells this of each as its diff."""
    talk = Approvals().start_thread().start_turn()
    for name in names:
        talk.item(change(name)).tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff=diff)
    return talk.end_turn()


def asked_elsewhere(item: str, cwd: str, policy: str, decision: str) -> Approvals:
    """A question that says another folder than its item."""
    talk = Approvals().running(policy).started(command_item(item)).question(item, cwd=cwd)
    talk.decides(decision).resolved()
    status = "completed" if decision == "accept" else "declined"
    return talk.completed(command_item(item, status)).message("m", "Well.").end_turn()


LEGAL = [
    Legal("read.includes-turns", "rolled back by another", rolled_back_by_another),
    Legal("read.includes-turns", "by who came later", rolled_back_by_a_client_that_came_later),
    Legal("thread.cwd-captured", "moved by another", moved_by_another),
    Legal("thread.cwd-captured", "moved by another and listed", moved_by_another_and_listed),
    Legal("turn.started-first", "came back mid turn", came_back_in_the_middle_of_a_turn),
    Legal("turn.started-first", "came back at its end", came_back_for_the_end_of_a_turn),
    Legal("item.started-before-delta", "away as a command began", away_when_a_command_began),
    Legal("item.started-before-delta", "away as a message began", away_when_a_message_began),
    Legal("item.completed-after-started", "away as a change began", away_when_a_file_change_began),
    Legal("item.completed-after-started", "away as a call began", away_when_a_tool_was_called),
    Legal("delta.rebuilds-reply", "away for a delta", away_for_a_delta),
    Legal("delta.rebuilds-reply", "away for all but one", away_for_all_but_the_first_delta),
    Legal("turn.diff-after-change", "away for the diff", away_for_the_diff),
    Legal("turn.diff-after-change", "away for the last diff", away_for_the_last_diff),
    Legal(
        "mcp.error-when-failed",
        "cut off by an interrupt",
        interrupted_call,
        frozenset({"mcp.error-when-failed"}),
    ),
    Legal(
        "mcp.error-when-failed",
        "cut off by cancel",
        call_beside_a_cancelled_command,
        frozenset({"mcp.error-when-failed"}),
    ),
    Legal(
        "status.read-matches-turns",
        "title written meanwhile",
        a_title_is_written_meanwhile,
        frozenset({"status.read-matches-turns"}),
    ),
    Legal(
        "status.read-matches-turns",
        "second title meanwhile",
        a_second_title_is_written_meanwhile,
        frozenset({"status.read-matches-turns"}),
    ),
    Legal("mcp.progress-of-call", "of another client", progress_of_a_call_of_another),
    Legal("mcp.progress-of-call", "of a thread elsewhere", progress_on_a_thread_of_nobody_here),
    Legal(
        "thread.one-provider",
        "another model by another",
        another_model_of_another_provider,
        frozenset({"thread.one-provider"}),
    ),
    Legal(
        "thread.one-provider",
        "resumed elsewhere",
        resumed_elsewhere_with_another_provider,
        frozenset({"thread.one-provider"}),
    ),
    Legal(
        "approval.session-remembered", "answer met an interrupt", session_answer_met_an_interrupt
    ),
    Legal("approval.session-remembered", "answer met a failure", session_answer_met_a_failure),
    Legal(
        "approval.denied-not-run",
        "network denied",
        lambda: network_denied(networkApprovalContext={"host": "example.org"}),
        frozenset({"approval.denied-not-run"}),
    ),
    Legal(
        "approval.denied-not-run",
        "network of a host denied",
        lambda: network_denied(network="example.org", command=["curl", "example.org"]),
        frozenset({"approval.denied-not-run"}),
    ),
]
ILLEGAL = [
    Illegal("turn.diff-whole", "a sentence", lambda: told_diff("a.txt was added", "a.txt")),
    Illegal(
        "turn.diff-whole",
        "a list of names",
        lambda: told_diff("+ a.txt\n+ b.txt", "a.txt", "b.txt"),
    ),
    Illegal(
        "approval.names-item",
        "another folder",
        lambda: asked_elsewhere("call_1", "/home/user/elsewhere", "untrusted", "accept"),
        Level.SHOULD,
    ),
    Illegal(
        "approval.names-item",
        "the root, under on-request",
        lambda: asked_elsewhere("call_7", "/", "on-request", "decline"),
        Level.SHOULD,
    ),
]
