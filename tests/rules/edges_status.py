"""Edge cases of the rules on thread status, turn/started and turn/completed."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.trace import End
from tests.rules.approval_talk import Approvals, command_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import (
    THREAD,
    TROUBLE,
    TURN,
    Talk,
    agent_message,
    settings,
    thread_object,
    turn_object,
    user_message,
)

MATCHES, NOTIFIED = "status.read-matches-turns", "status.change-notified"
INTERRUPTED, NAMES = "turn.interrupted-when-asked", "error.names-turn"
HINT, ACTIVE_HINT = frozenset({MATCHES}), frozenset({"status.active-while-turn"})


def begun() -> Talk:
    """A turn that was announced, and nothing more of it yet."""
    return Talk().start_thread().ask_turn().reply_turn().status("active").turn_started()


def over_before_it_is_told() -> Talk:
    """The turn was over when it was read; what it had to tell waited behind the answer."""
    talk = begun().read_status("idle").item(user_message("u", "hello"))
    return talk.message("m", "Hel", "lo").end_turn()


def over_though_the_model_was_called() -> Talk:
    """The same; the model had been called and had answered before the read."""
    talk = begun().calls("hello").ends().read_status("idle")
    return talk.item(user_message("u", "hello")).message("m", "Hello").end_turn()


def idle_while_called() -> Talk:
    """The model is called for the turn after it was read as idle."""
    talk = begun().read_status("idle").calls("hello").item(user_message("u", "hello"))
    return talk.message("m", "Hello").ends().end_turn()


def idle_while_streaming() -> Talk:
    """The model's answer goes on while the thread is read as idle."""
    talk = begun().item(user_message("u", "hello")).calls("hello").started(agent_message("m", ""))
    talk.delta("m", "Hel").read_status("idle").ends().delta("m", "lo")
    return talk.completed(agent_message("m", "Hello")).end_turn()


def idle_while_asking() -> Talk:
    """The thread is read as idle while its turn waits for our answer."""
    talk = Approvals().running("untrusted").started(command_item()).question().read_status("idle")
    talk.decides("accept").resolved().completed(command_item(status="completed"))
    return talk.message("m", "Done").end_turn()


def changes_just_after() -> Talk:
    """The status changes just after the end of the turn, and a read comes between."""
    talk = Talk().start_thread().start_turn().message("m", "Hello").turn_completed()
    return talk.read_status("active").status("idle")


def changes_after_two_reads() -> Talk:
    """The same with two reads, and another turn after it."""
    talk = Talk().start_thread().start_turn().message("m", "Hello").turn_completed()
    return talk.read_status("active").read_status("active").status("idle").plain_turn("turn_2")


def compacts_after_the_turn() -> Talk:
    """The server compacts by itself after the turn, and is active meanwhile."""
    cut = {"type": "contextCompaction", "id": "cut"}
    talk = Talk().start_thread().start_turn().message("m", "Hello").turn_completed().started(cut)
    return talk.read_status("active").read_status("active").completed(cut).status("idle")


def active_though_idle_was_told() -> Talk:
    """idle was told, and then active is read."""
    return Talk().start_thread().plain_turn().read_status("active")


def active_for_ever() -> Talk:
    """active is read again and again after the turn, and no change is told."""
    talk = Talk().start_thread().start_turn().message("m", "Hello").turn_completed()
    return talk.read_status("active").read_status("active")


def read_with(turn: dict[str, Any], talk: Talk, kind: str = "idle") -> Talk:
    """thread/read with turns, of a thread of this status."""
    thread = thread_object(preview="hello", status={"type": kind}, turns=[turn])
    talk.asks("thread/read", threadId=THREAD, includeTurns=True)
    return talk.answers({"thread": thread})


def idle_with_a_turn_in_progress() -> Talk:
    """The same answer has an idle thread and its turn in progress."""
    return read_with(turn_object(), begun()).end_turn()


def resumed_idle_with_its_turn() -> Talk:
    """The thread is opened a second time in the middle of a turn, and is idle then."""
    thread = thread_object(preview="hello", turns=[turn_object()])
    talk = begun().asks("thread/resume", threadId=THREAD)
    return talk.answers({"thread": thread, **settings()}).end_turn()


def cut_off_by_a_crash() -> Talk:
    """A turn of the stored thread was never ended: the server that ran it is gone."""
    thread = thread_object(preview="hello", turns=[turn_object()])
    talk = Talk().asks("thread/resume", threadId=THREAD)
    return talk.answers({"thread": thread, **settings()}).plain_turn("turn_2")


def cut_off_and_not_loaded() -> Talk:
    """The same, read without being loaded."""
    talk = Talk().asks("thread/read", threadId=THREAD, includeTurns=True)
    status = {"type": "notLoaded"}
    return talk.answers({"thread": thread_object(status=status, turns=[turn_object()])})


def listed(talk: Talk, kind: str) -> Talk:
    """thread/list with the one thread."""
    status = {"type": kind, "activeFlags": []} if kind == "active" else {"type": kind}
    shown = thread_object(preview="hello", status=status)
    return talk.asks("thread/list").answers({"data": [shown], "nextCursor": None})


def silent_turn() -> Talk:
    """A turn of which no status is told."""
    return Talk().start_thread().ask_turn().reply_turn().turn_started()


def listed_as_active() -> Talk:
    """A list shows the thread active in the turn, and no change is told."""
    return listed(silent_turn(), "active").turn_completed()


def read_as_broken() -> Talk:
    """The thread is read as idle, then as in systemError, without a report of the change."""
    talk = Talk().start_thread().read_status("idle").ask_turn().reply_turn().turn_started()
    return talk.turn_completed(status="failed", error=TROUBLE).read_status("systemError")


def listed_as_not_loaded() -> Talk:
    """Lists and reads show every thread as not loaded, as the text has it."""
    talk = listed(Talk().start_thread().start_turn(), "notLoaded")
    return listed(talk.message("m", "Hello").end_turn(), "notLoaded")


def answered_at_the_end() -> Talk:
    """turn/start is answered when its turn has ended."""
    talk = Talk().start_thread().ask_turn().status("active").turn_started()
    return talk.item(user_message("u", "hello")).message("m", "Hello").end_turn().reply_turn()


def second_answered_at_the_end() -> Talk:
    """The same of a second turn, which failed."""
    talk = Talk().start_thread().plain_turn().ask_turn(text="again").status("active")
    talk.turn_started("turn_2").end_turn("turn_2", status="failed", error=TROUBLE)
    return talk.reply_turn("turn_2")


def answered_after_the_items() -> Talk:
    """turn/start is answered late, and before the end."""
    talk = Talk().start_thread().ask_turn().status("active").turn_started()
    return talk.item(user_message("u", "hello")).message("m", "Hello").reply_turn().end_turn()


def joined_and_answered_at_the_end() -> Talk:
    """A second turn/start joined the running turn, and is answered with it when that has ended."""
    talk = Talk().start_thread().start_turn().ask_turn(text="more")
    return talk.item(user_message("v", "more")).message("m", "Hello").end_turn().reply_turn()


def broken(*, will_retry: bool = False) -> Talk:
    """A turn that tells of an error."""
    return Talk().start_thread().start_turn().failing(will_retry=will_retry)


def ends_interrupted(talk: Talk) -> Talk:
    """The end of the turn."""
    return talk.end_turn(status="interrupted")


def forked_meanwhile() -> Talk:
    """The thread is forked while the turn runs, and then that is interrupted."""
    talk = Talk().start_thread().start_turn().asks("thread/fork", threadId=THREAD)
    return ends_interrupted(talk.refuses("a turn is running").message("m", "Hel"))


def archived_meanwhile() -> Talk:
    """The thread is archived while its turn runs."""
    talk = Talk().start_thread().start_turn().asks("thread/archive", threadId=THREAD).answers({})
    return ends_interrupted(talk.tells("thread/archived", threadId=THREAD))


def question_timed_out() -> Talk:
    """The question is not answered in time, and the server ends the turn."""
    return ends_interrupted(Approvals().running("untrusted").started(command_item()).question())


def server_ended() -> Talk:
    """The server is told to stop by its machine, ends its turns and exits."""
    return ends_interrupted(Talk().start_thread().start_turn())


def opened(method: str, *turns: dict[str, Any], thread: str = THREAD) -> Talk:
    """A thread that was begun elsewhere, or a copy of it."""
    talk = Talk().asks(method, threadId=THREAD)
    talk.answers({"thread": thread_object(thread, turns=list(turns)), **settings()})
    if method == "thread/fork":
        talk.tells("thread/started", thread=thread_object(thread))
    return talk


def error_on_a_resumed_thread() -> Talk:
    """An error names a turn that the history has not, and that never begins."""
    return opened("thread/resume").failing(will_retry=False, turn="turn_9").plain_turn()


def error_on_a_fork() -> Talk:
    """An error on a new copy names a turn that it was not copied with."""
    done = turn_object(status="completed")
    talk = opened("thread/fork", done, thread="thr_2")
    return talk.failing(will_retry=True, turn="turn_9", thread="thr_2")


def error_of_a_turn_that_ran() -> Talk:
    """The thread was resumed in the middle of a turn, which then fails."""
    status = {"type": "active", "activeFlags": []}
    talk = Talk().asks("thread/resume", threadId=THREAD)
    thread = thread_object(preview="hello", status=status, turns=[turn_object()])
    talk.answers({"thread": thread, **settings()}).failing(will_retry=False)
    return talk.end_turn(status="failed", error=TROUBLE)


def error_where_no_turns_are_shown() -> Talk:
    """The same, and the answer showed no turns at all."""
    thread = {k: v for k, v in thread_object(preview="hello").items() if k != "turns"}
    talk = Talk().asks("thread/resume", threadId=THREAD).answers({"thread": thread, **settings()})
    return talk.failing(will_retry=True, turn="turn_5")


def untold_turn(talk: Talk, turn: str, *, late: bool = False) -> Talk:
    """A whole turn; its thread is reported active after it, or never."""
    talk.ask_turn().reply_turn(turn).turn_started(turn)
    talk.item(user_message(f"{turn}-u", "hello"), turn)
    talk.message(f"{turn}-m", "Hello", turn=turn).turn_completed(turn)
    return talk.status("active").status("idle") if late else talk


def interrupted_turn() -> Talk:
    """A turn that is interrupted."""
    talk = begun().item(user_message("u", "hello")).interrupt().answers({})
    return talk.end_turn(status="interrupted")


def failed_turn() -> Talk:
    """A turn that fails, and leaves its thread in systemError."""
    talk = begun().item(user_message("u", "hello")).failing(will_retry=False)
    return talk.end_turn(status="failed", error=TROUBLE)


def forked(kind: str, *copies: dict[str, Any], read: bool = False, turn: bool = False) -> Talk:
    """A thread is forked while its turn runs; the copy is shown with this status."""
    talk = begun().asks("thread/fork", threadId=THREAD)
    copy = thread_object("thr_2", turns=list(copies))
    active = {"type": kind} | ({"activeFlags": []} if kind == "active" else {})
    talk.answers({"thread": copy if read else copy | {"status": active}})
    talk.tells("thread/started", thread=thread_object("thr_2"))
    if turn:
        talk.ask_turn("thr_2").reply_turn("turn_9").status("active", "thr_2")
    if read:
        talk.asks("thread/read", threadId="thr_2", includeTurns=True)
        talk.answers({"thread": copy | {"status": active}})
    if turn:
        talk.turn_started("turn_9", "thr_2").end_turn("turn_9", "thr_2")
    return talk.message("m", "Hel", "lo").end_turn()


LEGAL: list[Legal] = [
    Legal(
        NOTIFIED,
        "active-reported-late",
        lambda: untold_turn(
            untold_turn(Talk().start_thread(), TURN, late=True), "turn_2", late=True
        ),
        hints=ACTIVE_HINT,
    ),
    Legal(
        NOTIFIED,
        "still-in-system-error",
        lambda: untold_turn(failed_turn(), "turn_2"),
        hints=ACTIVE_HINT,
    ),
    Legal(MATCHES, "copy-of-a-running-turn", lambda: forked("active", turn_object())),
    Legal(MATCHES, "idle-copy", lambda: forked("idle", turn_object(status="completed"))),
    Legal(
        MATCHES,
        "copy-with-a-turn-not-shown-yet",
        lambda: forked("active", turn_object(status="completed"), read=True, turn=True),
    ),
    Legal(MATCHES, "over-before-it-is-told", over_before_it_is_told, HINT),
    Legal(MATCHES, "over-though-the-model-was-called", over_though_the_model_was_called, HINT),
    Legal(MATCHES, "changes-just-after-the-turn", changes_just_after),
    Legal(MATCHES, "changes-after-two-reads", changes_after_two_reads),
    Legal(
        MATCHES,
        "compacts-by-itself-after-the-turn",
        compacts_after_the_turn,
        frozenset({"turn.completed-last"}),
    ),
    Legal(MATCHES, "turn-cut-off-by-a-crash", cut_off_by_a_crash, HINT),
    Legal(MATCHES, "turn-cut-off-and-not-loaded", cut_off_and_not_loaded),
    Legal(NOTIFIED, "listed-as-not-loaded", listed_as_not_loaded),
    Legal(NOTIFIED, "read-as-not-loaded", lambda: listed_as_not_loaded().read_status("notLoaded")),
    Legal("turn.start-reply", "answered-after-the-items", answered_after_the_items),
    Legal("turn.start-reply", "joined-and-answered-at-the-end", joined_and_answered_at_the_end),
    Legal(INTERRUPTED, "archived-meanwhile", archived_meanwhile),
    Legal(INTERRUPTED, "question-timed-out", question_timed_out),
    Legal(INTERRUPTED, "server-ended", server_ended, end=End.EXITED),
    Legal(NAMES, "error-of-a-turn-that-ran", error_of_a_turn_that_ran),
    Legal(NAMES, "error-where-no-turns-are-shown", error_where_no_turns_are_shown),
]
ILLEGAL: list[Illegal] = [
    Illegal(
        NOTIFIED,
        "second-turn-untold",
        lambda: untold_turn(Talk().start_thread().plain_turn(), "turn_2").status("idle"),
        also=ACTIVE_HINT | {"status.changed-is-change"},
    ),
    Illegal(
        NOTIFIED,
        "first-of-two-untold",
        lambda: untold_turn(Talk().start_thread(), TURN).plain_turn("turn_2"),
        also=ACTIVE_HINT,
    ),
    Illegal(
        NOTIFIED,
        "turn-after-an-interrupt-untold",
        lambda: untold_turn(interrupted_turn(), "turn_2"),
        also=ACTIVE_HINT,
    ),
    Illegal(MATCHES, "idle-while-the-model-is-called", idle_while_called),
    Illegal(MATCHES, "idle-while-the-answer-streams", idle_while_streaming),
    Illegal(MATCHES, "idle-while-a-question-is-open", idle_while_asking),
    Illegal(MATCHES, "active-though-idle-was-told", active_though_idle_was_told),
    Illegal(
        MATCHES, "active-for-ever", active_for_ever, also=frozenset({"status.active-while-turn"})
    ),
    Illegal(MATCHES, "active-copy", lambda: forked("active", turn_object(status="interrupted"))),
    Illegal(MATCHES, "active-copy-without-turns", lambda: forked("active"), Level.SHOULD),
    Illegal(MATCHES, "active-copy-read", lambda: forked("active", read=True)),
    Illegal(MATCHES, "idle-with-a-turn-in-progress", idle_with_a_turn_in_progress),
    Illegal(MATCHES, "resumed-idle-with-its-turn", resumed_idle_with_its_turn),
    Illegal(
        NOTIFIED, "listed-as-active", listed_as_active, also=frozenset({"status.active-while-turn"})
    ),
    Illegal(
        NOTIFIED, "read-as-broken", read_as_broken, also=frozenset({"status.active-while-turn"})
    ),
    Illegal("turn.start-reply", "answered-at-the-end", answered_at_the_end, Level.SHOULD),
    Illegal(
        "turn.start-reply", "second-answered-at-the-end", second_answered_at_the_end, Level.SHOULD
    ),
    Illegal(INTERRUPTED, "after-an-error", lambda: ends_interrupted(broken()), Level.SHOULD),
    Illegal(
        INTERRUPTED,
        "after-a-retry",
        lambda: ends_interrupted(broken(will_retry=True).message("m", "Hello")),
        Level.SHOULD,
    ),
    Illegal(INTERRUPTED, "after-a-refused-fork", forked_meanwhile, Level.SHOULD),
    Illegal(NAMES, "on-a-resumed-thread", error_on_a_resumed_thread, Level.SHOULD),
    Illegal(NAMES, "on-a-fork", error_on_a_fork),
]
