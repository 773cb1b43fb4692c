"""Edge cases of the rules on the approval sequence and on the effects of a decision."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.approval_talk import FILE, Approvals, command_item, file_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, TURN, Talk, mcp_call, stored_plain_turn, thread_object

OUTPUT = "item/commandExecution/outputDelta"
TOOL_OUTPUT = "item/fileChange/outputDelta"
DIFF = "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+new\n"
ORDER = frozenset({"approval.order"})
CUT_OFF = frozenset({"approval.final-item", "item.final-status"})


def running(policy: str = "untrusted") -> Approvals:
    return Approvals().running(policy)


def pending(policy: str = "untrusted", **more: Any) -> Approvals:
    return running(policy).started(command_item(**more)).question()


def pending_file(policy: str = "untrusted") -> Approvals:
    return running(policy).started(file_item()).question("patch_1", FILE)


def done(talk: Talk, text: str = "So be it.") -> Talk:
    return talk.message("m-1", text).end_turn()


def diff(talk: Talk, text: str = DIFF) -> Talk:
    return talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff=text)


def completed(talk: Talk, status: str, **more: Any) -> Talk:
    return talk.completed(command_item(status=status, **more))


# A question that the server takes back by itself.


def timed_out() -> Talk:
    return done(completed(pending().resolved(), "declined"))


def timed_out_file() -> Talk:
    return done(pending_file().resolved().completed(file_item(status="failed")))


def answered_too_late() -> Talk:
    return done(completed(pending().resolved().decides("accept"), "declined"))


def one_of_two_timed_out() -> Talk:
    talk = pending().started(command_item("call_2")).question("call_2").resolved(0)
    completed(talk, "declined")
    talk.decides("accept").resolved().completed(command_item("call_2", "completed"))
    return done(talk)


def asked_anew() -> Talk:
    talk = pending().resolved().question(reason="and it needs the network")
    return done(completed(talk.decides("accept").resolved(), "completed"))


def cancelled_too_late() -> Talk:
    return done(completed(pending().resolved().decides("cancel"), "declined"))


def cancelled_after_the_item() -> Talk:
    return done(completed(pending().resolved(), "declined").sends(cancel(0)))


def cancel(to: int) -> dict[str, Any]:
    return {"id": to, "result": {"decision": "cancel"}}


def resolved_and_run() -> Talk:
    return done(completed(pending().resolved(), "completed"))


def resolved_and_changed() -> Talk:
    talk = pending_file().resolved().decides("accept").completed(file_item(status="completed"))
    return done(diff(talk))


# Answers that something else overtook.


def met_by_another_turn(decision: str, status: str) -> Talk:
    """A further turn/start while the client is asked: the server ends the turn for it."""
    talk = pending().ask_turn(text="rather this").decides(decision).resolved()
    completed(talk, "declined").end_turn(status=status)
    talk.reply_turn("turn_2").status("active").turn_started("turn_2")
    return talk.end_turn("turn_2")


def fork_under_reject() -> Talk:
    talk = Approvals().policy("reject").plain_turn()
    talk.asks("thread/fork", threadId=THREAD)
    fork = thread_object("thr_2", preview="hello")
    talk.answers({"thread": {**fork, "turns": [stored_plain_turn()]}})
    talk.tells("thread/started", thread=fork)
    where = {"turn": "turn_2", "thread": "thr_2"}
    talk.start_turn(**where).started(command_item(), **where)
    talk.question(turn="turn_2", threadId="thr_2").decides("accept")
    talk.tells("serverRequest/resolved").completed(command_item(status="declined"), **where)
    return talk.end_turn(**where)


def rejected(talk: Approvals) -> Talk:
    """Asked under reject, and rejected whatever the answer is."""
    talk.approved("declined").patched("declined")
    return done(talk)


def rejected_by_the_turn() -> Talk:
    talk = Approvals().policy("untrusted").ask_turn(approvalPolicy="reject")
    talk.reply_turn().status("active").turn_started()
    return rejected(talk)


def fails_while_asked(answer: str) -> Talk:
    """The model's stream breaks while the client is asked: our answer crosses that."""
    trouble = {"message": "stream closed", "agentErrorInfo": "ResponseStreamDisconnected"}
    talk = pending()
    if answer:
        talk.decides(answer)
    return completed(talk, "declined").end_turn(status="failed", error=trouble)


def fails_as_it_is_accepted() -> Talk:
    trouble = {"message": "stream closed", "agentErrorInfo": "ResponseStreamDisconnected"}
    talk = pending_file().decides("accept").resolved().completed(file_item(status="declined"))
    return talk.end_turn(status="failed", error=trouble)


# Work that was cut off.


def interrupted_while_asked() -> Talk:
    talk = pending_file().interrupt().answers({}).completed(file_item())
    return talk.end_turn(status="interrupted")


def cut_off_by_cancel() -> Talk:
    talk = pending_file().started(command_item()).question().decides("cancel").resolved()
    completed(talk, "declined").completed(file_item())
    return talk.end_turn(status="interrupted")


def interrupted_command() -> Talk:
    talk = running("never").started(command_item()).delta("call_1", "a", method=OUTPUT)
    return completed(talk.interrupt().answers({}), "inProgress").end_turn(status="interrupted")


def archived_call() -> Talk:
    talk = running("never").started(mcp_call("call_1")).asks("thread/archive", threadId=THREAD)
    talk.completed(mcp_call("call_1")).end_turn(status="interrupted")
    return talk.status("notLoaded").answers({}).tells("thread/archived", threadId=THREAD)


def answered_then_cut_off() -> Talk:
    talk = pending_file().decides("accept").resolved().interrupt().answers({})
    return talk.completed(file_item()).end_turn(status="interrupted")


def declined_and_in_progress() -> Talk:
    return done(pending_file().decides("decline").resolved().completed(file_item()))


def cancelled_and_in_progress() -> Talk:
    talk = completed(pending().decides("cancel").resolved(), "inProgress")
    return talk.end_turn(status="interrupted")


def never_final() -> Talk:
    return done(running("never").item(mcp_call("call_1", "inProgress")))


# Denied, and yet.


def denied_while_it_runs() -> Talk:
    """A command that runs already, and is asked about for the network that it wants besides."""
    talk = running().started(command_item()).delta("call_1", "one\n", method=OUTPUT).question()
    talk.decides("decline").resolved().delta("call_1", "two\n", method=OUTPUT)
    return done(completed(talk, "completed", aggregatedOutput="one\ntwo\n", exitCode=0))


def denial_in_the_output() -> Talk:
    talk = pending().decides("decline").resolved()
    talk.delta("call_1", "the user said no\n", method=OUTPUT)
    shows = {"aggregatedOutput": "the user said no\n", "exitCode": -1}
    return done(completed(talk, "declined", **shows))


def denial_with_a_zero() -> Talk:
    talk = pending().decides("decline").resolved()
    return done(completed(talk, "declined", aggregatedOutput="", exitCode=0, durationMs=0))


def denied_then_accepted() -> Talk:
    """The same change is proposed again, and made."""
    talk = running().patched("declined", "decline")
    talk.started(file_item("patch_2")).question("patch_2", FILE).decides("accept").resolved()
    return done(diff(talk.completed(file_item("patch_2", "completed"))))


def denied_and_written_by_a_command() -> Talk:
    talk = running().patched("declined", "decline").approved()
    return done(diff(talk))


def denied_and_another_diff() -> Talk:
    talk = running().patched("declined", "decline")
    return done(diff(diff(talk, ""), "--- a/made.txt\n+++ b/made.txt\n@@ -1 +1 @@\n-a\n+b\n"))


def denied_and_written_with_the_next(*, plain: bool = True, written: bool = True) -> Talk:
    """The diff after the next accepted change has, or has not, the lines of the denied one.

    `plain` is the form of a change that has `> ` before added lines.
    """
    denied, accepted = file_item(), file_item("patch_2", name="next.txt")
    for item in (denied, accepted):
        item["changes"][0]["diff"] = "> new\n" if plain else "new\n"
    talk = running().started(denied).question("patch_1", FILE).decides("decline").resolved()
    talk.completed(denied | {"status": "declined"}).started(accepted).question("patch_2", FILE)
    talk.decides("accept").resolved().completed(accepted | {"status": "completed"})
    other = DIFF.replace("made.txt", "next.txt")
    return done(diff(talk, other + DIFF if written else other))


def retry_denied() -> Talk:
    """Under on-failure: the command has failed, and is not to be run again."""
    talk = completed(pending("on-failure").decides("decline").resolved(), "failed", exitCode=1)
    return done(talk)


def failed_try_is_completed(policy: str = "on-failure", code: int = 3) -> Talk:
    """The command has come to its end, with an exit code, and is not to be run again."""
    talk = pending(policy).decides("decline").resolved()
    return done(completed(talk, "completed", exitCode=code))


def more_rights_denied() -> Talk:
    talk = running().started(command_item()).delta("call_1", "no rights\n", method=OUTPUT)
    talk.question().decides("decline").resolved()
    return done(completed(talk, "failed", aggregatedOutput="no rights\n", exitCode=1))


def denied_and_run(decision: str, status: str) -> Talk:
    talk = pending().decides(decision).resolved().delta("call_1", "made\n", method=OUTPUT)
    completed(talk, "declined", aggregatedOutput="made\n", exitCode=0)
    return talk.end_turn(status=status)


def denied_and_printed() -> Talk:
    shows = {"command": "echo one; echo two", "aggregatedOutput": "one\ntwo\n", "exitCode": 0}
    talk = pending(command="echo one; echo two").decides("decline").resolved()
    return done(completed(talk, "declined", **shows))


def denied_and_streamed() -> Talk:
    talk = pending().decides("decline").resolved().delta("call_1", "made\n", method=OUTPUT)
    return done(completed(talk, "declined"))


def denied_and_changed() -> Talk:
    return done(diff(running().patched("declined", "decline")))


def denied_and_changed_at_once() -> Talk:
    talk = diff(pending_file().decides("decline"))
    return done(talk.tells("serverRequest/resolved").completed(file_item(status="declined")))


def after_a_resume(talk: Approvals) -> Approvals:
    """A thread that was resumed before its turn began."""
    talk.policy("untrusted").asks("thread/resume", threadId=THREAD)
    shown = talk_settings(thread_object())
    return talk.answers(shown).start_turn()


def talk_settings(thread: dict[str, Any]) -> dict[str, Any]:
    return {
        "thread": thread,
        "model": "mock-model",
        "modelProvider": "mock",
        "cwd": "/home/user/project",
        "approvalPolicy": "untrusted",
        "sandbox": {"type": "dangerFullAccess"},
    }


def accepted_and_declined(file: bool) -> Talk:
    talk = after_a_resume(Approvals())
    return done(talk.patched("declined") if file else talk.approved("declined"))


LEGAL: list[Legal] = [
    Legal("approval.order", "the question times out", timed_out, ORDER),
    Legal("approval.order", "the question about a file times out", timed_out_file, ORDER),
    Legal("approval.order", "one of two questions times out", one_of_two_timed_out, ORDER),
    Legal("approval.order", "asked anew with more to ask", asked_anew, ORDER),
    Legal("approval.order", "the turn fails while asked", lambda: fails_while_asked("")),
    Legal("approval.accepted-runs", "the turn fails first", lambda: fails_while_asked("accept")),
    Legal("approval.accepted-runs", "it fails as it is accepted", fails_as_it_is_accepted),
    Legal(
        "approval.cancel-interrupts",
        "the turn fails first",
        lambda: fails_while_asked("cancel"),
        frozenset({"approval.cancel-interrupts"}),
    ),
    Legal("approval.accepted-runs", "the answer comes too late", answered_too_late, ORDER),
    Legal(
        "approval.accepted-runs",
        "reject asks and rejects all the same",
        lambda: rejected(running("reject")),
        frozenset({"approval.rejected"}),
    ),
    Legal(
        "approval.accepted-runs",
        "reject of the turn asks and rejects",
        rejected_by_the_turn,
        frozenset({"approval.rejected"}),
    ),
    Legal(
        "approval.accepted-runs",
        "reject copied by a fork",
        fork_under_reject,
        frozenset({"approval.accepted-runs"}),
    ),
    Legal(
        "approval.accepted-runs",
        "the next turn takes over",
        lambda: met_by_another_turn("accept", "interrupted"),
    ),
    Legal(
        "approval.decline-goes-on",
        "the next turn takes over",
        lambda: met_by_another_turn("decline", "interrupted"),
    ),
    Legal("approval.decline-goes-on", "the retry is declined", retry_denied),
    Legal("approval.cancel-interrupts", "cancel comes too late", cancelled_too_late, ORDER),
    Legal("approval.cancel-interrupts", "cancel after the item", cancelled_after_the_item, ORDER),
    Legal("approval.final-item", "interrupted while asked", interrupted_while_asked, CUT_OFF),
    Legal("approval.final-item", "cut off by cancel of another", cut_off_by_cancel, CUT_OFF),
    Legal(
        "item.final-status",
        "a command that was interrupted",
        interrupted_command,
        frozenset({"item.final-status"}),
    ),
    Legal(
        "item.final-status",
        "a call in a thread that is archived",
        archived_call,
        frozenset({"item.final-status"}),
    ),
    Legal(
        "approval.denied-not-run",
        "running already and asked for more",
        denied_while_it_runs,
        frozenset({"approval.denied-not-run", "approval.asks-before-acting"}),
    ),
    Legal(
        "approval.denied-not-run",
        "the denial is in the output",
        denial_in_the_output,
        frozenset({"approval.denied-not-run"}),
    ),
    Legal(
        "approval.denied-not-run",
        "the exit code of nothing is zero",
        denial_with_a_zero,
        frozenset({"approval.denied-not-run"}),
    ),
    Legal("approval.denied-not-run", "the change is accepted later", denied_then_accepted),
    Legal("approval.denied-not-run", "a command wrote it", denied_and_written_by_a_command),
    Legal("approval.denied-not-run", "the diff has other lines", denied_and_another_diff),
    Legal(
        "approval.denied-not-run",
        "the next change is written alone",
        lambda: denied_and_written_with_the_next(written=False),
    ),
    Legal("approval.denied-not-run", "a failed try has its exit code", failed_try_is_completed),
    Legal("approval.denied-status", "a failed try is not repeated", retry_denied),
    Legal(
        "approval.denied-status",
        "no more rights after a failed try",
        more_rights_denied,
        frozenset({"approval.asks-before-acting"}),
    ),
]
ILLEGAL: list[Illegal] = [
    Illegal("approval.order", "resolved by itself and run", resolved_and_run),
    Illegal("approval.order", "resolved and then answered", resolved_and_changed),
    Illegal(
        "approval.accepted-runs",
        "a command of a resumed thread",
        lambda: accepted_and_declined(False),
    ),
    Illegal(
        "approval.accepted-runs",
        "a change of a resumed thread",
        lambda: accepted_and_declined(True),
    ),
    Illegal("approval.final-item", "answered and then cut off", answered_then_cut_off),
    Illegal(
        "approval.final-item",
        "declined and in progress",
        declined_and_in_progress,
        also=frozenset({"item.final-status"}),
    ),
    Illegal(
        "item.final-status",
        "cancelled and in progress",
        cancelled_and_in_progress,
    ),
    Illegal("item.final-status", "a call that is never final", never_final),
    Illegal(
        "approval.denied-not-run",
        "declined and run",
        lambda: denied_and_run("decline", "completed"),
    ),
    Illegal(
        "approval.denied-not-run",
        "cancelled and run",
        lambda: denied_and_run("cancel", "interrupted"),
    ),
    Illegal(
        "approval.denied-not-run",
        "declined after no failure and completed",
        lambda: failed_try_is_completed(code=0),
    ),
    Illegal(
        "approval.denied-not-run",
        "declined beforehand and completed",
        lambda: failed_try_is_completed("untrusted"),
    ),
    Illegal("approval.denied-not-run", "written with the next", denied_and_written_with_the_next),
    Illegal(
        "approval.denied-not-run",
        "written with the next in another form",
        lambda: denied_and_written_with_the_next(plain=False),
    ),
    Illegal("approval.denied-not-run", "declined and printed", denied_and_printed),
    Illegal("approval.denied-not-run", "declined and streamed", denied_and_streamed, Level.SHOULD),
    Illegal("approval.denied-not-run", "declined and changed", denied_and_changed),
    Illegal("approval.denied-not-run", "changed when it was declined", denied_and_changed_at_once),
]
