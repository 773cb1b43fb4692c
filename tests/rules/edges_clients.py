"""Edge cases of the rules on several clients: different or late answers, shared ids."""

from harness.judge.verdict import Level
from tests.rules.approval_talk import command_item
from tests.rules.edge import Illegal, Legal
from tests.rules.edges_adversary import ACTIVE, Two, begins, completes, whole
from tests.rules.good_clients import asked_both, settled
from tests.rules.traces import (
    THREAD,
    TURN,
    agent_message,
    settings,
    stored_plain_turn,
    thread_object,
    turn_object,
    user_message,
)

SAME_END, SAME_ITEM = "clients.same-end", "clients.same-item"
CARRIED_OUT, RESOLVED = "clients.answer-carried-out", "clients.resolved-told"
TOLD, LEFT = "clients.subscriber-told", "clients.left-untold"
BOTH = ("c2", "c1")
IDLE = ("thread/status/changed", {"status": {"type": "idle"}})


def asked(*, third: bool = False) -> Two:
    """Both clients are asked about a command; a third one has asked for a list alone."""
    talk = Two().opened("untrusted")
    if third:
        talk.on("c3").asks("thread/list").answers({"data": [], "nextCursor": None}).on("c1")
    return asked_both(talk.begun())


def resolved(talk: Two, *connections: str) -> Two:
    """serverRequest/resolved to these."""
    for connection in connections:
        talk.on(connection).resolved()
    return talk.on("c1")


def done(talk: Two, status: str, turn_status: str = "completed") -> Two:
    """The end of the command and of the turn, told to both."""
    return talk.both(completes(command_item(status=status))).ended(status=turn_status)


def answered_unlike(status: str) -> Two:
    """One accepts and the other declines, before either is told that it is resolved."""
    talk = asked().on("c2").decides("accept").on("c1").decides("decline")
    return done(resolved(talk, *BOTH), status)


def answered_too_late() -> Two:
    """One declines; the other accepts after it was told that it is resolved."""
    talk = resolved(asked().on("c1").decides("decline"), *BOTH)
    return done(talk.on("c2").decides("accept").on("c1"), "declined")


def withdrawn() -> Two:
    """The server declines by itself after a while; both accept too late."""
    talk = resolved(asked(), *BOTH).on("c2").decides("accept").on("c1").decides("accept")
    return done(talk, "declined")


def interrupted_meanwhile() -> Two:
    """One accepts while the other one interrupts the turn."""
    talk = asked().on("c2").decides("accept").on("c1").interrupt().answers({})
    return done(talk, "declined", "interrupted")


def answered_by_an_error() -> Two:
    """One declines; the other answers by an error, which decides nothing."""
    talk = asked().on("c2").sends({"id": 0, "error": {"code": 1, "message": "no"}})
    talk.on("c1").decides("decline")
    return done(resolved(talk, *BOTH), "declined")


def one_is_asked() -> Two:
    """The second client alone is asked, accepts, and is told alone that it is resolved."""
    talk = Two().opened("untrusted").begun().both(begins(command_item()))
    talk.on("c2").question().decides("accept").resolved()
    return done(talk.on("c1"), "completed")


def two_questions(*connections: str) -> Two:
    """Two commands, one after the other; of the second one these are told that it is resolved."""
    talk = settled(asked(), "accept")
    talk = asked_both(talk, "call_2").on("c2").decides("accept")
    return resolved(talk, *connections).both(completes(command_item("call_2", "completed"))).ended()


def turns_of_one_id() -> Two:
    """Two threads, each with a turn of the same id and an item of the same id, which end unlike."""
    talk = Two()
    for connection, thread, status in (("c1", THREAD, "completed"), ("c2", "thr_2", "interrupted")):
        talk.on(connection).start_thread(thread).ask_turn(thread).reply_turn()
        talk.status("active", thread).turn_started(TURN, thread)
        talk.item(agent_message("m", f"In {thread}."), TURN, thread)
        if status == "interrupted":
            talk.interrupt(thread=thread).answers({})
        talk.end_turn(TURN, thread, status)
    return talk


def items_of_one_id() -> Two:
    """Two turns, each with an item of the same id."""
    talk = Two().opened().begun().both(*whole(agent_message("m", "One."))).ended()
    talk.begun("turn_2").both(*whole(agent_message("m", "Two."), "turn_2"))
    return talk.ended("turn_2")


def unlike_beside_the_outcome() -> Two:
    """An item has a member for one client that it has not for the other."""
    talk = Two().opened().begun().both(begins(command_item()))
    for connection, took in (("c2", 3), ("c1", 4)):
        talk.on(connection).completed(command_item(status="completed", durationMs=took))
    return talk.ended()


def ended(talk: Two, second: str, first: str) -> Two:
    """The end of the turn, with a status for each client."""
    talk.both(IDLE)
    return talk.on("c2").turn_completed(status=second).on("c1").turn_completed(status=first)


def said(*, second: str, first: str, third: str = "") -> Two:
    """A message that each client is told the end of in words of its own."""
    talk = Two().opened()
    if third:
        talk.on("c3").resumes().on("c1")
    talk.begun().both(begins(agent_message("m", "")))
    told = {"c2": second, "c1": first} | ({"c3": third} if third else {})
    if third:
        talk.on("c3").status("active").turn_started().item(user_message(f"{TURN}-user", "hello"))
        talk.started(agent_message("m", ""))
    for connection, words in told.items():
        talk.on(connection).completed(agent_message("m", words))
    for connection in told:
        talk.on(connection).end_turn()
    return talk.on("c1")


def goes_on_alone(talk: Two, turn: str = "turn_2") -> Two:
    """A turn of the first client that the second one is told nothing of."""
    talk.on("c1").ask_turn().reply_turn(turn).status("active").turn_started(turn)
    return talk.item(agent_message(f"{turn}-m", "Yes."), turn).end_turn(turn)


def shared_once() -> Two:
    """A turn that both were told of."""
    return Two().opened().begun().both(*whole(agent_message("m", "Yes."))).ended()


def archived_between() -> Two:
    """Another client archives and restores the thread; who follows it then is open."""
    talk = shared_once().asks("thread/archive", threadId=THREAD).answers({})
    talk.both(("thread/archived", {})).asks("thread/unarchive", threadId=THREAD)
    talk.answers({"thread": thread_object(preview="hello")}).both(("thread/unarchived", {}))
    return goes_on_alone(talk)


def came_after() -> Two:
    """The second client opens the thread when the turn is over."""
    talk = Two().start_thread().plain_turn().on("c2")
    return talk.resumes(stored_plain_turn(), preview="hello")


def left_and(*, back: bool) -> Two:
    """The second client leaves; it may come back before the next turn, which it is told of then."""
    talk = shared_once().on("c2").leaves()
    if not back:
        return goes_on_alone(talk)
    items = [user_message(f"{TURN}-user", "hello"), agent_message("m", "Yes.")]
    talk.resumes(turn_object(status="completed", items=items), preview="hello").on("c1")
    talk.begun("turn_2").both(*whole(agent_message("m2", "Yes."), "turn_2"))
    return talk.ended("turn_2")


def left_and_back_at_once() -> Two:
    """The second client leaves, and comes back before it is told that it has left."""
    talk = shared_once().on("c2")
    for number, method in ((70, "thread/unsubscribe"), (71, "thread/resume")):
        talk.sends({"method": method, "id": number, "params": {"threadId": THREAD}})
    items = [user_message(f"{TURN}-user", "hello"), agent_message("m", "Yes.")]
    shown = thread_object(turns=[turn_object(status="completed", items=items)], preview="hello")
    talk.answers({"status": "unsubscribed"}, to=70)
    talk.answers({"thread": shown, **settings(), "approvalPolicy": "never"}, to=71).on("c1")
    talk.begun("turn_2").both(*whole(agent_message("m2", "Yes."), "turn_2"))
    return talk.ended("turn_2")


def news_after_leaving() -> Two:
    """A client that unsubscribed gets news of turns and of the thread, but not of items."""
    talk = shared_once().on("c2").leaves().on("c1").ask_turn().reply_turn("turn_2")
    talk.both(
        ("thread/status/changed", {"status": ACTIVE}),
        ("turn/started", {"turn": turn_object("turn_2")}),
    )
    talk.item(agent_message("m2", "Yes."), "turn_2")
    return talk.both(
        IDLE,
        ("turn/completed", {"turn": turn_object("turn_2", "completed")}),
    )


def told_of_an_end() -> Two:
    """A client that unsubscribed in the middle of a turn still gets the end of the open item."""
    talk = Two().opened().begun().both(begins(agent_message("m", ""))).on("c2").leaves()
    talk.both(completes(agent_message("m", "Yes.")))
    return talk.on("c1").end_turn()


def told_of_the_next_turn() -> Two:
    """A client that unsubscribed gets an item of the next turn."""
    talk = shared_once().on("c2").leaves().on("c1").ask_turn().reply_turn("turn_2")
    talk.status("active").turn_started("turn_2").both(*whole(agent_message("m2", "Yes."), "turn_2"))
    return talk.end_turn("turn_2")


def item_kept_back() -> Two:
    """A message of a turn that both are told of is kept from the second client."""
    talk = Two().opened().begun().both(*whole(agent_message("m", "Yes.")))
    return talk.item(agent_message("m2", "And no.")).ended()


def another_thread_is_read() -> Two:
    """The second client reads the thread of the first one, and is given its own."""
    talk = Two().start_thread().on("c2").start_thread("thr_2")
    talk.asks("thread/read", threadId=THREAD)
    return talk.answers({"thread": thread_object("thr_2")}).on("c1")


def answer_to_another() -> Two:
    """The answer to a request of the first client comes to the second one."""
    talk = Two().opened().asks("thread/loaded/list")
    return talk.on("c2").answers({"data": [THREAD], "nextCursor": None}).on("c1")


def answers_exchanged() -> Two:
    """Both read a thread of their own with one id, and each gets what the other one asked for."""
    talk = Two()
    for connection, thread in (("c1", THREAD), ("c2", "thr_2")):
        talk.on(connection).start_thread(thread)
    for connection, thread in (("c1", THREAD), ("c2", "thr_2")):
        asks = {"method": "thread/read", "id": 77, "params": {"threadId": thread}}
        talk.on(connection).sends(asks)
    for connection, thread in (("c1", "thr_2"), ("c2", THREAD)):
        talk.on(connection).answers({"thread": thread_object(thread)}, to=77)
    return talk


LEGAL: list[Legal] = [
    Legal(CARRIED_OUT, "answers-differ-and-it-ran", lambda: answered_unlike("completed")),
    Legal(CARRIED_OUT, "answers-differ-and-it-did-not-run", lambda: answered_unlike("declined")),
    Legal(CARRIED_OUT, "answered-too-late", answered_too_late),
    Legal(CARRIED_OUT, "withdrawn-by-the-server", withdrawn),
    Legal(CARRIED_OUT, "interrupted-by-another-meanwhile", interrupted_meanwhile),
    Legal(CARRIED_OUT, "answered-by-an-error-too", answered_by_an_error),
    Legal(RESOLVED, "one-is-asked-and-told", one_is_asked),
    Legal(RESOLVED, "two-questions-each-resolved", lambda: two_questions(*BOTH)),
    Legal(RESOLVED, "told-to-nobody-for-one-question", two_questions, frozenset({RESOLVED})),
    Legal(SAME_END, "turns-of-two-threads-have-one-id", turns_of_one_id),
    Legal(SAME_END, "told-to-one-of-them", lambda: left_and(back=False)),
    Legal(SAME_ITEM, "items-of-two-turns-have-one-id", items_of_one_id),
    Legal(SAME_ITEM, "unlike-beside-its-outcome", unlike_beside_the_outcome),
    Legal(TOLD, "archived-by-another-between", archived_between),
    Legal(TOLD, "came-when-it-was-over", came_after),
    Legal(TOLD, "left-before", lambda: left_and(back=False)),
    Legal(TOLD, "untold", lambda: goes_on_alone(shared_once()), frozenset({TOLD})),
    Legal(LEFT, "came-back", lambda: left_and(back=True)),
    Legal(LEFT, "came-back-at-once", left_and_back_at_once),
    Legal(LEFT, "news-of-turns-for-everybody", news_after_leaving),
    Legal(LEFT, "told-of-an-end", told_of_an_end, frozenset({LEFT})),
]
ILLEGAL: list[Illegal] = [
    Illegal(
        SAME_END,
        "interrupted-for-one",
        lambda: ended(Two().opened().begun(), "interrupted", "completed"),
    ),
    Illegal(
        SAME_END,
        "interrupted-for-who-did-not-ask",
        lambda: ended(Two().opened().begun().interrupt().answers({}), "completed", "interrupted"),
    ),
    Illegal(SAME_ITEM, "other-words-for-the-second", lambda: said(second="No.", first="Yes.")),
    Illegal(
        SAME_ITEM,
        "other-words-for-the-third",
        lambda: said(second="Yes.", first="Yes.", third="No."),
    ),
    Illegal(
        CARRIED_OUT,
        "accepted-by-one-and-declined",
        lambda: done(resolved(asked().on("c1").decides("accept"), *BOTH), "declined"),
    ),
    Illegal(
        CARRIED_OUT,
        "declined-by-one-and-completed",
        lambda: done(resolved(asked().on("c2").decides("decline"), *BOTH), "completed"),
    ),
    Illegal(
        CARRIED_OUT,
        "declined-by-one-while-a-third-looks-on",
        lambda: done(resolved(asked(third=True).on("c2").decides("decline"), *BOTH), "completed"),
    ),
    Illegal(RESOLVED, "one-of-two-questions", lambda: two_questions("c2"), Level.SHOULD),
    Illegal(RESOLVED, "neither-is-told-of-the-second", two_questions, Level.SHOULD),
    Illegal(TOLD, "an-item-is-kept-back", item_kept_back, Level.SHOULD),
    Illegal(TOLD, "kept-from-a-subscriber", lambda: goes_on_alone(shared_once()), Level.SHOULD),
    Illegal(LEFT, "told-of-an-end", told_of_an_end, Level.SHOULD),
    Illegal(LEFT, "told-of-the-next-turn", told_of_the_next_turn, Level.SHOULD),
    Illegal(
        "response.known-id",
        "answer-to-another-client",
        answer_to_another,
        also=frozenset({"request.answered"}),
    ),
    Illegal("read.thread-id", "answers-of-one-id-exchanged", answers_exchanged),
    Illegal("read.thread-id", "thread-of-another-client", another_thread_is_read),
]
