"""Cases of the rules on the requested sandbox of a thread or a turn."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.approval_talk import file_item
from tests.rules.case import Case, Found
from tests.rules.traces import THREAD, TURN, Talk, settings, thread_object

READ_ONLY = {"type": "readOnly", "access": {"type": "fullAccess"}}
FULL = {"type": "dangerFullAccess"}


def asking(talk: Talk, sandbox: str | None, **more: Any) -> Talk:
    """thread/start alone."""
    return talk.asks("thread/start", **({} if sandbox is None else {"sandbox": sandbox}), **more)


def given(talk: Talk, sandbox: str | None, thread: str = THREAD) -> Talk:
    """thread/start that is taken: two messages."""
    asked = asking(talk, sandbox)
    return asked.answers({"thread": thread_object(thread), **settings()})


def turn_with(talk: Talk, turn: str, **more: Any) -> Talk:
    """A turn that is started and ends."""
    talk.ask_turn(**more).reply_turn(turn)
    return talk.status("active").turn_started(turn).end_turn(turn)


def patching(talk: Talk, turn: str, policy: dict[str, Any] | None, status: str) -> Talk:
    """A turn under never that changes a file unasked: 7 messages."""
    more: dict[str, Any] = {} if policy is None else {"sandboxPolicy": policy}
    talk.ask_turn(**more).reply_turn(turn).status("active").turn_started(turn)
    return talk.item(file_item(f"{turn}-patch", status), turn).end_turn(turn)


def thread(sandbox: dict[str, Any]) -> Talk:
    """A thread under never with a sandbox: seqs 0 to 2."""
    talk = Talk().asks("thread/start", approvalPolicy="never")
    talk.answers({"thread": thread_object(), **settings(), "sandbox": sandbox})
    return talk.tells("thread/started", thread=thread_object())


CASES = [
    Case(
        rule="thread.sandbox-taken",
        good=given(given(given(Talk(), "read-only"), "workspace-write"), "danger-full-access"),
        witnesses=("sandbox read-only", "sandbox workspace-write", "sandbox danger-full-access"),
        bad=given(asking(given(Talk(), None), "read-only").refuses(), "workspace-write"),
        found=(Found("sandbox read-only", (2, 3)),),
        # Refused, perhaps for the model; words of the text's example, and of no text.
        not_exercised=asking(
            asking(
                asking(given(Talk(), None), "read-only", model="no such model").refuses(),
                "workspaceWrite",
            ).refuses(),
            "none",
        ).refuses(),
    ),
    Case(
        rule="thread.sandbox-camel-taken",
        good=given(Talk(), "workspaceWrite"),
        witnesses=("sandbox workspaceWrite",),
        bad=asking(given(Talk(), "workspace-write"), "workspaceWrite").refuses(),
        found=(Found("sandbox workspaceWrite", (2, 3), Level.INFO),),
        not_exercised=asking(asking(Talk(), "readOnly").refuses(), "read-only").refuses(),
    ),
    Case(
        rule="turn.sandbox-policy-taken",
        good=turn_with(Talk().start_thread(), TURN, sandboxPolicy=READ_ONLY),
        witnesses=("request turn/start id 2, sandbox readOnly",),
        bad=turn_with(Talk().start_thread(), TURN).ask_turn(sandboxPolicy=READ_ONLY).refuses(),
        found=(Found("request turn/start id 3, sandbox readOnly", (9, 10)),),
        # No turn before; one that runs; a policy that the text does not have; another model.
        not_exercised=turn_with(
            Talk().start_thread().ask_turn(sandboxPolicy=READ_ONLY).refuses(), TURN
        )
        .ask_turn(sandboxPolicy={"type": "none"})
        .refuses()
        .ask_turn(sandboxPolicy=FULL, model="no such model")
        .refuses()
        .start_turn("turn_2")
        .ask_turn(sandboxPolicy=FULL)
        .refuses(),
    ),
    Case(
        rule="turn.sandbox-applies",
        # What the thread's own sandbox would not have allowed; what the turn's does not.
        good=patching(
            patching(thread(READ_ONLY), "turn_1", FULL, "completed"), "turn_2", READ_ONLY, "failed"
        ),
        witnesses=("item turn_1-patch of turn turn_1", "item turn_2-patch of turn turn_2"),
        bad=patching(thread(FULL), "turn_1", READ_ONLY, "completed"),
        found=(Found("item turn_1-patch of turn turn_1", (3, 8), Level.SHOULD),),
        # A thread that may do all; what failed for any reason; no policy of the turn's own.
        not_exercised=patching(
            patching(patching(thread(FULL), "turn_1", FULL, "completed"), "turn_2", FULL, "failed"),
            "turn_3",
            None,
            "completed",
        ),
    ),
]
