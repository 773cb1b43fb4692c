"""Edge cases of rules on whole turns: the client was away, returned, or archived the thread."""

from typing import Any, TypeVar

from tests.rules.approval_talk import Approvals, command_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    command,
    settings,
    thread_object,
    turn_object,
    user_message,
)

WHILE_TURN = "status.active-while-turn"
ONCE, COMPLETES = "turn.started-once", "turn.completes"
INCLUDES, STARTED = "read.includes-turns", "item.completed-after-started"
DELTAS, DELTA = "delta.rebuilds-reply", "item.started-before-delta"
DIFF, WHOLE = "turn.diff-after-change", "turn.diff-whole"
# A message that has begun, and is not among the items that the answer to thread/resume shows.
UNSHOWN = frozenset({"attach.known-items"})
T = TypeVar("T", bound=Talk)
ACTIVE: dict[str, Any] = {"type": "active", "activeFlags": []}
SAID = user_message("said", "hello")


def running() -> Talk:
    """A running turn of which the user's message was told."""
    return Talk().start_thread().start_turn()


def leaves(talk: T, **params: Any) -> T:
    """The client leaves the thread; the params of the request are not shown."""
    return talk.asks("thread/unsubscribe", **params).answers({"status": "unsubscribed"})


def returns(talk: T) -> T:
    """It opens the thread again, in the middle of the turn."""
    thread = thread_object(preview="hello", status=ACTIVE, turns=[turn_object(items=[SAID])])
    return talk.asks("thread/resume", threadId=THREAD).answers({"thread": thread, **settings()})


def away(talk: T) -> T:
    """It was away for a while."""
    return returns(leaves(talk, threadId=THREAD))


def answered_after_it_was_away() -> Talk:
    """The question stays open meanwhile."""
    talk = Approvals().running("untrusted").started(command_item()).question()
    away(talk)
    talk.decides("accept").resolved().completed(command_item(status="completed"))
    return talk.end_turn()


def back_after_an_archive(*before: str) -> Talk:
    """Archiving unloads the thread; another client begins a turn in it before it is back."""
    talk = Talk().start_thread().asks("thread/archive", threadId=THREAD).answers({})
    talk.tells("thread/archived", threadId=THREAD)
    talk.asks("thread/unarchive", threadId=THREAD).answers({"thread": thread_object()})
    talk.tells("thread/unarchived", threadId=THREAD)
    for kind in before:
        talk.status(kind)
    talk.asks("thread/resume", threadId=THREAD)
    status = {"type": "active", "activeFlags": []}
    talk.answers({"thread": thread_object(status=status), **settings()})
    return talk.end_turn()


def turn_of_a_thread_once_archived(*, by_us: bool = True) -> Talk:
    """After an archiving nobody follows the thread, and the client starts a turn all the same."""
    talk = Talk().start_thread()
    if by_us:
        talk.asks("thread/archive", threadId=THREAD).answers({})
    talk.tells("thread/archived", threadId=THREAD).tells("thread/unarchived", threadId=THREAD)
    return silent_turn(talk)


def another_resumes(talk: Talk) -> None:
    """A second client opens the thread."""
    talk.on("c2").asks("thread/resume", threadId=THREAD)
    talk.answers({"thread": thread_object(), **settings()})


def read(talk: Talk, status: dict[str, Any]) -> None:
    """The thread is read, and shown with a status."""
    shown = thread_object(status=status)
    talk.asks("thread/read", threadId=THREAD).answers({"thread": shown})


def read_by_who_archived() -> Talk:
    """A client that archived a thread need not get its later changes of status."""
    talk = Talk().start_thread()
    talk.asks("thread/archive", threadId=THREAD).answers({})
    talk.tells("thread/archived", threadId=THREAD).tells("thread/unarchived", threadId=THREAD)
    another_resumes(talk)
    read(talk.on("c1"), {"type": "idle"})
    talk.on("c2").ask_turn(text="hello").reply_turn(TURN).turn_started(TURN)
    talk.tells("thread/status/changed", threadId=THREAD, status=ACTIVE)
    read(talk.on("c1"), ACTIVE)
    talk.on("c2").item(SAID, TURN)
    talk.tells("thread/status/changed", threadId=THREAD, status={"type": "idle"})
    talk.turn_completed(TURN)
    return talk


def silent_turn(talk: Talk) -> Talk:
    """A turn during which no status is told."""
    talk.ask_turn(text="hello").reply_turn(TURN).turn_started(TURN)
    return talk.item(SAID, TURN).turn_completed(TURN)


def greeted() -> Talk:
    """A running turn with a message that has begun."""
    return running().started(agent_message("m", "")).delta("m", "Hel")


def goes_on(talk: Talk) -> Talk:
    """The message goes on and the turn ends; "lo, " came while the client was away."""
    return talk.delta("m", "you").completed(agent_message("m", "Hello, you")).end_turn()


def change(name: str) -> dict[str, Any]:
    """A file change."""
    made = {"path": f"/home/user/project/{name}", "kind": "add", "diff": "new\n"}
    return {"type": "fileChange", "id": name, "status": "completed", "changes": [made]}


def changed_while_away() -> Talk:
    """The diff of a change came while the client was away."""
    return away(running().item(change("made.txt"))).message("m", "Done").end_turn()


def changed_before_and_after() -> Talk:
    """A diff that named the first file; the one that names both came while the client was away."""
    talk = running().item(change("made.txt"))
    talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff="+++ made.txt")
    return away(talk.item(change("more.txt"))).message("m", "Done").end_turn()


def told_anew() -> Talk:
    """A client that resumes gets the turn and its open item again, in their present state."""
    talk = returns(greeted()).turn_started().started(agent_message("m", "Hel"))
    return talk.delta("m", "lo").completed(agent_message("m", "Hello")).end_turn()


def announced_anew() -> Talk:
    """The same after the client was away, of the turn alone."""
    return away(running()).turn_started().message("m", "Hello").end_turn()


def archived(talk: Talk) -> Talk:
    """The thread is archived in the middle of a turn, of which nothing more comes."""
    talk.asks("thread/archive", threadId=THREAD).answers({})
    return talk.tells("thread/archived", threadId=THREAD)


def cut_off(status: str = "interrupted") -> Talk:
    """A turn that was cut off before anything came of it; nothing of it is kept."""
    talk = running()
    if status == "interrupted":
        return talk.interrupt().answers({}).end_turn(status=status).read()
    error = {"message": "no", "agentErrorInfo": "Other", "additionalDetails": ""}
    return talk.end_turn(status=status, error=error).read()


def cut_off_and_completed() -> Talk:
    """A turn that was cut off, and one that was not; nothing is kept of either."""
    talk = running().interrupt().answers({}).end_turn(status="interrupted")
    return talk.plain_turn("turn_2").read()


def announced_twice_after_a_return() -> Talk:
    """The client comes in, is told of the turn, and told again."""
    return away(running()).turn_started().turn_started().end_turn()


def archived_before() -> Talk:
    """The thread was archived and taken back before the turn, which never ends."""
    talk = archived(Talk().start_thread().plain_turn())
    talk.asks("thread/unarchive", threadId=THREAD).answers({"thread": thread_object()})
    talk.tells("thread/unarchived", threadId=THREAD).start_turn("turn_2").status("idle")
    return talk.message("m", "Hello", turn="turn_2")


def refused_to_archive() -> Talk:
    """The running thread is not archived, and the turn never ends."""
    talk = running().asks("thread/archive", threadId=THREAD).refuses("a turn is running")
    return talk.message("m", "Hello").status("idle")


def wrong_before_leaving() -> Talk:
    """The message was completed with another text before the client left."""
    talk = greeted().completed(agent_message("m", "Hallo"))
    return away(talk).message("n", "Done").end_turn()


def wrong_after_a_return() -> Talk:
    """A message that began after the return is completed with another text."""
    talk = away(greeted()).started(agent_message("n", "")).delta("n", "Done")
    return talk.completed(agent_message("n", "Over")).end_turn()


LEGAL: list[Legal] = [
    Legal(DELTAS, "some-missed-while-away", lambda: goes_on(away(greeted()))),
    Legal(DELTAS, "some-missed-after-leaving-all", lambda: goes_on(returns(leaves(greeted())))),
    Legal(DELTAS, "begun-again-for-who-comes-in", told_anew, frozenset({ONCE})),
    Legal(STARTED, "begun-while-away", lambda: goes_on(away(running())), UNSHOWN),
    Legal(
        STARTED,
        "command-begun-while-away",
        lambda: away(running()).completed(command("c", "completed")).end_turn(),
    ),
    Legal(DELTA, "begun-while-away", lambda: goes_on(returns(leaves(running()))), UNSHOWN),
    Legal(
        DELTA,
        "asked-for-and-left-at-once",
        lambda: goes_on(away(Talk().start_thread().ask_turn().reply_turn())),
        UNSHOWN,
    ),
    Legal("turn.started-first", "back-after-an-archive", back_after_an_archive),
    Legal(WHILE_TURN, "turn-of-a-thread-once-archived", turn_of_a_thread_once_archived),
    Legal(
        WHILE_TURN,
        "turn-of-a-thread-others-archived",
        lambda: turn_of_a_thread_once_archived(by_us=False),
    ),
    Legal("status.change-notified", "read-by-who-archived", read_by_who_archived),
    Legal(
        "turn.started-first",
        "back-after-an-archive-that-was-told",
        lambda: back_after_an_archive("notLoaded", "active"),
    ),
    Legal(DIFF, "told-while-away", changed_while_away),
    Legal(WHOLE, "told-while-away", changed_before_and_after),
    Legal(DIFF, "second-told-while-away", changed_before_and_after),
    Legal(WHOLE, "only-one-told-while-away", changed_while_away),
    Legal(
        "approval.order",
        "question-open-while-away",
        answered_after_it_was_away,
    ),
    Legal(
        "approval.order",
        "resolved-while-away",
        lambda: (
            away(
                Approvals()
                .running("untrusted")
                .started(command_item())
                .question()
                .decides("accept")
            )
            .message("m", "Done")
            .end_turn()
        ),
    ),
    Legal(ONCE, "announced-to-who-comes-in", announced_anew, frozenset({ONCE})),
    Legal(ONCE, "told-anew-to-who-comes-in", told_anew, frozenset({ONCE})),
    Legal(COMPLETES, "archived-meanwhile", lambda: archived(running()), frozenset({COMPLETES})),
    Legal(
        COMPLETES,
        "archived-while-a-command-runs",
        lambda: archived(running().started(command("c"))),
        frozenset({COMPLETES}),
    ),
    Legal(INCLUDES, "interrupted-turn-not-kept", cut_off, frozenset({INCLUDES})),
    Legal(INCLUDES, "failed-turn-not-kept", lambda: cut_off("failed"), frozenset({INCLUDES})),
]
ILLEGAL: list[Illegal] = [
    Illegal(DELTAS, "wrong-before-leaving", wrong_before_leaving),
    Illegal(DELTAS, "wrong-after-a-return", wrong_after_a_return),
    Illegal(ONCE, "announced-twice-after-a-return", announced_twice_after_a_return),
    Illegal(ONCE, "announced-twice", lambda: running().turn_started().end_turn()),
    Illegal(COMPLETES, "archived-before-the-turn", archived_before),
    Illegal(COMPLETES, "not-archived-after-all", refused_to_archive),
    Illegal(INCLUDES, "one-of-them-completed", cut_off_and_completed),
    Illegal(INCLUDES, "completed", lambda: Talk().start_thread().plain_turn().read()),
]
