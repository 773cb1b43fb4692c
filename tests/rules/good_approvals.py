"""Good conversations with approvals, for `good_traces`."""

from collections.abc import Callable

from harness.trace.trace import Trace
from tests.rules.approval_talk import CWD, Approvals, command_item, file_item
from tests.rules.traces import THREAD, TURN, agent_message, settings, thread_object

OUTPUT = "item/commandExecution/outputDelta"


def approved_command() -> Trace:
    """A command that is asked about, approved, and run; the thread is read while it is asked."""
    talk = Approvals("approved-command").sends({"method": "initialized"})
    talk.running().started(command_item()).question().read_status("active")
    talk.decides("accept").resolved().delta("call_1", "made\n", method=OUTPUT)
    done = command_item(status="completed", aggregatedOutput="made\n", exitCode=0, durationMs=3)
    return talk.completed(done).message("m-1", "It is ", "made.").end_turn().trace()


def declined_command() -> Trace:
    """A command that is declined; the turn goes on without it."""
    talk = Approvals("declined-command").running().approved("declined", decision="decline")
    return talk.message("m-1", "As you wish.").end_turn().trace()


def cancelled_command() -> Trace:
    """A command that is cancelled, and its turn with it."""
    talk = Approvals("cancelled-command").running().approved("declined", decision="cancel")
    return talk.end_turn(status="interrupted").trace()


def changed_in_two_turns() -> Trace:
    """Two turns with a file change each, and the diff of each turn."""
    talk = Approvals("changed-in-two-turns").running("never")
    for turn, name in ((TURN, "one.txt"), ("turn_2", "two.txt")):
        if turn != TURN:
            talk.start_turn(turn, text="and this")
        diff = f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+new\n"
        talk.item(file_item(f"patch-{turn}", "completed", name), turn)
        talk.tells("turn/diff/updated", threadId=THREAD, turnId=turn, diff=diff).end_turn(turn)
    return talk.trace()


def file_changes() -> Trace:
    """A file change that is approved in one turn, and one that is declined in the next."""
    talk = Approvals("file-changes").running().patched().end_turn()
    talk.start_turn("turn_2", text="and this").patched("declined", "decline", turn="turn_2")
    return talk.message("m-1", "So be it.", turn="turn_2").end_turn("turn_2").trace()


def session_approval() -> Trace:
    """A command that is approved for the session, run again unasked; then one approved once."""
    talk = Approvals("session-approval").running()
    talk.approved(decision="acceptForSession").item(command_item("call_2", "completed"))
    talk.started(command_item("call_3", command="make"))
    talk.question("call_3", command=["bash", "-lc", "make"])
    talk.decides("accept").resolved()
    return talk.completed(command_item("call_3", "failed", command="make")).end_turn().trace()


def accepted_twice() -> Trace:
    """A command that is accepted once, and asked about again when it comes again."""
    talk = Approvals("accepted-twice").running().approved().approved(item="call_2")
    talk.started(command_item("call_3", command="make"))
    return talk.completed(command_item("call_3", "completed", command="make")).end_turn().trace()


def on_request() -> Trace:
    """A turn with on-request in a thread under never: asked. The next gives never: not asked."""
    talk = Approvals("on-request").policy("never").ask_turn(approvalPolicy="on-request")
    talk.reply_turn().status("active").turn_started().approved().patched().end_turn()
    talk.ask_turn(text="again", approvalPolicy="never").reply_turn("turn_2").status("active")
    talk.turn_started("turn_2").item(command_item("call_2", "completed"), "turn_2")
    return talk.end_turn("turn_2").trace()


def rejected() -> Trace:
    """Under reject what needs approval is declined without a question."""
    talk = Approvals("rejected").running("reject").item(command_item(status="declined"))
    return talk.item(agent_message("m-1", "It may not be.")).end_turn().trace()


def on_failure() -> Trace:
    """Under on-failure what does not fail is done unasked."""
    talk = Approvals("on-failure").running("on-failure")
    talk.item(command_item(status="completed", exitCode=0)).item(file_item(status="completed"))
    diff = "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+new\n"
    talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff=diff)
    return talk.message("m-1", "Done.").end_turn().trace()


def asked_at_once() -> Trace:
    """Two commands that are asked about at the same time, answered in the other order."""
    talk = Approvals("asked-at-once").running()
    talk.started(command_item()).started(command_item("call_2")).question().question("call_2")
    talk.decides("accept", to=1).decides("decline", to=0).resolved(1).resolved(0)
    talk.completed(command_item(status="declined"))
    return talk.completed(command_item("call_2", "completed")).end_turn().trace()


def sandboxes() -> Trace:
    """Threads with a sandbox each; then a turn without its own, and one that may only read."""
    talk = Approvals("sandboxes").policy("never")
    read_only = {"type": "readOnly", "access": {"type": "fullAccess"}}
    write = {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False}
    words = {"read-only": read_only, "workspace-write": write, "workspaceWrite": write}
    for number, (word, policy) in enumerate(words.items(), start=2):
        thread = thread_object(f"thr_{number}")
        talk.asks("thread/start", cwd=CWD, approvalPolicy="never", sandbox=word)
        talk.answers({"thread": thread, **settings(), "sandbox": policy})
        talk.tells("thread/started", thread=thread)
    talk.start_turn().message("m-1", "I can ", "write.").end_turn()
    talk.ask_turn(text="again", sandboxPolicy=read_only).reply_turn("turn_2").status("active")
    talk.turn_started("turn_2").item(file_item(status="failed"), "turn_2")
    return talk.end_turn("turn_2").trace()


APPROVALS: dict[str, Callable[[], Trace]] = {
    "approved-command": approved_command,
    "declined-command": declined_command,
    "cancelled-command": cancelled_command,
    "changed-in-two-turns": changed_in_two_turns,
    "file-changes": file_changes,
    "session-approval": session_approval,
    "accepted-twice": accepted_twice,
    "on-request": on_request,
    "rejected": rejected,
    "on-failure": on_failure,
    "asked-at-once": asked_at_once,
    "sandboxes": sandboxes,
}
