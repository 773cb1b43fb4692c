"""Edge cases of owed messages with several connections: which connection they are owed to."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import Closed
from tests.rules.approval_talk import COMMAND, FILE, command_item, file_item
from tests.rules.edge import Illegal, Legal
from tests.rules.edges_adversary import ACTIVE, Two, begins, completes, whole
from tests.rules.traces import (
    THREAD,
    TURN,
    agent_message,
    stored_plain_turn,
    turn_object,
    user_message,
)

ECHO = "user-message.echo"
COMPLETES, STARTED = "turn.completes", "turn.started-announced"
COMPLETED, ANSWERED, ANNOUNCED = "item.completes", "request.answered", "thread.started-announced"
ENDED = ("turn/completed", {"turn": turn_object(TURN, "completed")})
IDLE = ("thread/status/changed", {"status": {"type": "idle"}})


def one_turn() -> Two:
    """A turn of the first client with a message, all of it told to both, but for its end."""
    return Two().opened().begun().both(*whole(agent_message("m", "Yes.")), IDLE)


def ended_for(talk: Two, *connections: str) -> Two:
    """The end of the turn, told to these."""
    for connection in connections:
        talk.on(connection).tells(ENDED[0], threadId=THREAD, **ENDED[1])
    return talk


def onlooker() -> Two:
    """The second client has opened no thread; it is told of every turn that begins."""
    talk = (
        Two().start_thread().on("c2").asks("thread/list").answers({"data": [], "nextCursor": None})
    )
    talk.turn_started().on("c1").ask_turn().reply_turn().status("active").turn_started()
    return talk.message("m", "Yes.").end_turn()


def left_by(connection: str) -> Two:
    """One of two subscribers leaves in the middle of the turn; the other is told all."""
    other = "c1" if connection == "c2" else "c2"
    talk = Two().opened().begun().on(connection).leaves().on(other)
    return talk.message("m", "Yes.").end_turn()


def gone(connection: str) -> Two:
    """One of two subscribers is disconnected by us in the middle of the turn."""
    other = "c1" if connection == "c2" else "c2"
    talk = Two().opened().begun().mark(Closed(connection)).on(other)
    return talk.message("m", "Yes.").end_turn()


def came_in(*, told: bool) -> Two:
    """The second client opens the thread in the middle of the turn."""
    talk = Two().start_thread().start_turn().on("c2")
    talk.comes_back(turn_object(TURN)).on("c1").started(agent_message("m", ""))
    talk.on("c2").started(agent_message("m", "")).both(completes(agent_message("m", "Yes.")), IDLE)
    return ended_for(talk, "c1", "c2") if told else ended_for(talk, "c1")


def came_in_after_the_end() -> Two:
    """The second client opens the thread when the turn is over."""
    talk = Two().start_thread().plain_turn().on("c2")
    return talk.resumes(stored_plain_turn(), preview="hello")


def asked_for_by_a_stranger() -> Two:
    """The second client, which opened nothing, asks for a turn; the subscriber is told of it."""
    talk = Two().start_thread().on("c2").ask_turn().reply_turn().on("c1").status("active")
    return talk.turn_started().message("m", "Yes.").end_turn()


def asked_for_when_the_subscriber_is_gone() -> Two:
    """The only subscriber is disconnected; a client that opened nothing asks for a turn."""
    return Two().start_thread().mark(Closed("c1")).on("c2").ask_turn().reply_turn()


def asked_for_by_a_stranger_that_comes_in() -> Two:
    """The second client asks for a turn, and opens the thread while the first one is asked."""
    talk = Two()
    talk.policy("untrusted").on("c2").ask_turn().reply_turn().on("c1").status("active")
    talk.turn_started().item(user_message("u", "hello")).started(command_item()).question()
    shown = [user_message("u", "hello"), command_item()]
    talk.on("c2").comes_back(turn_object(TURN, items=shown))
    talk._question -= 1
    talk.question().decides("accept").both(("serverRequest/resolved", {}))
    return ended_for(talk.both(completes(command_item(status="completed")), IDLE), "c1", "c2")


def steered_once_the_stranger_came_in() -> Two:
    """The second client is told only of the input that is added after it opened the thread."""
    talk = Two().start_thread().on("c2").ask_turn().reply_turn().on("c1").status("active")
    talk.turn_started().item(user_message("u", "hello"))
    talk.on("c2").comes_back(turn_object(TURN, items=[user_message("u", "hello")])).on("c1")
    added = {"threadId": THREAD, "expectedTurnId": TURN}
    talk.asks("turn/steer", **added, input=[{"type": "text", "text": "and more"}])
    talk.answers({"turnId": TURN}).both(*whole(user_message("u2", "and more")))
    return ended_for(talk.both(*whole(agent_message("m", "Yes.")), IDLE), "c1", "c2")


def asked_for_while_it_runs(*, shown: str, turn: str = TURN, answered: bool = True) -> Two:
    """The first client's turn/start is answered with the turn that the second one had begun.

    Before, the second one has begun another turn with "before". The turn is interrupted before it
    has got to the first client's input.
    """
    talk = Two().opened().on("c2").ask_turn(text="before").reply_turn("turn_0").on("c1")
    begins_turn = ("turn/started", {"turn": turn_object("turn_0")})
    talk.both(("thread/status/changed", {"status": ACTIVE}), begins_turn)
    talk.both(*whole(user_message("u0", "before"), "turn_0")).ended("turn_0")
    talk.on("c2").ask_turn(text="hello")
    if answered:
        talk.reply_turn(turn)
    asked = talk.last.id
    talk.on("c1").ask_turn(text="and me").reply_turn()
    talk.both(("thread/status/changed", {"status": ACTIVE}))
    talk.both(("turn/started", {"turn": turn_object()}), *whole(user_message("u", shown)))
    if not answered:
        talk.on("c2").answers({"turn": turn_object(turn)}, to=asked).on("c1")
    return talk.interrupt().answers({}).ended(status="interrupted")


def asked_for_by_a_stranger_that_hears_it() -> Two:
    """The same, and the second client is told all but the end."""
    talk = Two().start_thread().on("c2").ask_turn().reply_turn()
    talk.both(("thread/status/changed", {"status": ACTIVE}))
    talk.both(("turn/started", {"turn": turn_object()}), *whole(agent_message("m", "Yes.")))
    return ended_for(talk.both(IDLE), "c1")


def asked(talk: Two, item: str, method: str) -> Two:
    """Both are asked, with one id."""
    talk.on("c2").question(item, method).on("c1").says(talk.last.json)
    return talk


def answered_by(connection: str) -> Two:
    """Both are asked, one answers, and both are told that the question is resolved."""
    talk = Two().opened("untrusted").begun().both(begins(command_item()))
    asked(talk, "call_1", COMMAND).on(connection).decides("accept").both(
        ("serverRequest/resolved", {})
    )
    talk.both(completes(command_item(status="completed")), IDLE)
    return ended_for(talk, "c1", "c2")


def file_answered_by(connection: str) -> Two:
    """The same of a file change that is declined, and the other one answers too late."""
    talk = Two().opened("untrusted").begun().both(begins(file_item()))
    asked(talk, "patch_1", FILE).on(connection).decides("decline").both(
        ("serverRequest/resolved", {})
    )
    talk.on("c1" if connection == "c2" else "c2").decides("accept")
    talk.both(completes(file_item(status="declined")), IDLE)
    return ended_for(talk, "c1", "c2")


def archived_by_another() -> Two:
    """The second client archives the thread in the middle of a turn; nothing more comes of it."""
    talk = Two().opened().begun().on("c2").asks("thread/archive", threadId=THREAD).answers({})
    return talk.both(("thread/archived", {}))


def archived_before_by_another() -> Two:
    """The second client archived the thread before the turn began, whose end is lost."""
    talk = Two().opened().on("c2").asks("thread/archive", threadId=THREAD).answers({})
    talk.both(("thread/archived", {})).on("c1").begun()
    talk.both(*whole(agent_message("m", "Yes.")), IDLE)
    return ended_for(talk, "c2")


def item_lost_to(connection: str) -> Two:
    """The completion of a command is told to one of the two only."""
    talk: Any = Two().opened().begun().both(begins(command_item()))
    other = "c1" if connection == "c2" else "c2"
    talk.on(other).completed(command_item(status="completed"))
    return ended_for(talk.both(IDLE), "c1", "c2")


def announcement_lost_to(connection: str) -> Two:
    """Each starts a thread of its own, and one of them is not announced."""
    talk = Two()
    for each, thread in (("c1", "thr_1"), ("c2", "thr_2")):
        talk.on(each).asks("thread/start", cwd="/home/user/project")
        talk.answers(Two().start_thread(thread).trace().frames[1].result)
        if each != connection:
            talk.on(each).tells(
                "thread/started", **Two().start_thread(thread).trace().frames[2].params
            )
    return talk


def answer_lost_to(connection: str) -> Two:
    """Both ask with the same id; one is not answered."""
    talk: Any = Two().opened()
    for each in ("c1", "c2"):
        talk.on(each).sends({"method": "thread/loaded/list", "id": 77, "params": {}})
    talk.on("c1" if connection == "c2" else "c2")
    return talk.answers({"data": [THREAD], "nextCursor": None}, to=77)


LEGAL: list[Legal] = [
    Legal(ECHO, "steered-once-a-stranger-came-in", steered_once_the_stranger_came_in),
    Legal(ECHO, "added to a turn of another", lambda: asked_for_while_it_runs(shown="hello")),
    Legal(
        ECHO,
        "added to a turn of another who is answered later",
        lambda: asked_for_while_it_runs(shown="hello", answered=False),
    ),
    Legal(STARTED, "a stranger comes in", asked_for_by_a_stranger_that_comes_in),
    Legal(COMPLETES, "nobody follows since a disconnect", asked_for_when_the_subscriber_is_gone),
    Legal(COMPLETES, "told-to-both-subscribers", lambda: ended_for(one_turn(), "c2", "c1")),
    Legal(COMPLETES, "not-told-to-who-opened-no-thread", onlooker),
    Legal(COMPLETES, "second-of-two-left", lambda: left_by("c2")),
    Legal(COMPLETES, "first-of-two-left", lambda: left_by("c1")),
    Legal(COMPLETES, "second-of-two-disconnected-by-us", lambda: gone("c2")),
    Legal(COMPLETES, "first-of-two-disconnected-by-us", lambda: gone("c1")),
    Legal(COMPLETES, "told-to-who-came-in-later", lambda: came_in(told=True)),
    Legal(COMPLETES, "not-told-to-who-came-in-after-it", came_in_after_the_end),
    Legal(
        COMPLETES,
        "not-told-to-who-came-in-later",
        lambda: came_in(told=False),
        frozenset({COMPLETES}),
    ),
    Legal(COMPLETES, "archived-by-another", archived_by_another, frozenset({COMPLETES})),
    Legal(STARTED, "not-told-to-a-stranger-that-asked", asked_for_by_a_stranger),
    Legal(STARTED, "told-to-who-came-in-later", lambda: came_in(told=True)),
    Legal("approval.order", "answered-by-the-second", lambda: answered_by("c2")),
    Legal("approval.order", "answered-by-the-first", lambda: answered_by("c1")),
    Legal("approval.order", "declined-by-the-second", lambda: file_answered_by("c2")),
    Legal("approval.order", "declined-by-the-first", lambda: file_answered_by("c1")),
]
ILLEGAL: list[Illegal] = [
    Illegal(
        ECHO,
        "the input of an earlier turn of another",
        lambda: asked_for_while_it_runs(shown="before"),
        Level.SHOULD,
    ),
    Illegal(COMPLETES, "lost-to-the-second", lambda: ended_for(one_turn(), "c1")),
    Illegal(COMPLETES, "lost-to-the-first", lambda: ended_for(one_turn(), "c2")),
    Illegal(COMPLETES, "lost-to-both", one_turn),
    Illegal(COMPLETES, "lost-to-a-stranger-that-heard-it", asked_for_by_a_stranger_that_hears_it),
    Illegal(COMPLETES, "lost-to-who-came-in-later", lambda: came_in(told=False), Level.SHOULD),
    Illegal(COMPLETES, "archived-by-another-before", archived_before_by_another),
    Illegal(COMPLETED, "lost-to-the-second", lambda: item_lost_to("c2")),
    Illegal(COMPLETED, "lost-to-the-first", lambda: item_lost_to("c1")),
    Illegal(ANNOUNCED, "lost-to-the-second", lambda: announcement_lost_to("c2")),
    Illegal(ANNOUNCED, "lost-to-the-first", lambda: announcement_lost_to("c1")),
    Illegal(ANSWERED, "lost-to-the-second", lambda: answer_lost_to("c2")),
    Illegal(ANSWERED, "lost-to-the-first", lambda: answer_lost_to("c1")),
]
