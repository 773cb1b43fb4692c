"""Edge cases of the rules on turns: ids, order, status, compaction, reads, steering."""

from tests.rules.edge import Illegal, Legal
from tests.rules.history_talk import FORK, past, stored
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    command,
    stored_plain_turn,
    thread_object,
    user_message,
)

OTHER = "thr_2"


def two_threads() -> Talk:
    """Two threads of one client."""
    return Talk().start_thread().start_thread(OTHER)


def counted_per_thread() -> Talk:
    """Each thread counts its turns from one; one turn after the other."""
    talk = two_threads().plain_turn().plain_turn(TURN, OTHER)
    return talk.plain_turn("turn_2").plain_turn("turn_2", OTHER)


def counted_at_once() -> Talk:
    """Two turns of one id run at the same time, with items of one id and one type."""
    talk = two_threads().start_turn().start_turn(TURN, OTHER, "other")
    for thread in (THREAD, OTHER):
        talk.started(agent_message("m", ""), thread=thread)
    talk.delta("m", "He").delta("m", "By", thread=OTHER)
    talk.delta("m", "llo").delta("m", "e", thread=OTHER)
    talk.completed(agent_message("m", "Hello")).completed(agent_message("m", "Bye"), thread=OTHER)
    return talk.end_turn().end_turn(thread=OTHER)


def counted_and_interrupted() -> Talk:
    """One of two turns of one id is interrupted, the other comes to its end and is steered."""
    talk = two_threads().start_turn().start_turn(TURN, OTHER, "other").interrupt().answers({})
    talk.end_turn(status="interrupted")
    said = [{"type": "text", "text": "more of it"}]
    talk.asks("turn/steer", threadId=OTHER, expectedTurnId=TURN, input=said)
    talk.answers({"turnId": TURN}).message("m", "Hello", thread=OTHER)
    return talk.end_turn(thread=OTHER)


def late_word_of_another() -> Talk:
    """The late items belong to a thread of another client, with a turn of the same id."""
    talk = Talk().start_thread().start_turn()
    talk.completed(command("c", "completed"), thread="thr_7").turn_completed(thread="thr_7")
    return talk.message("m", "Hello").end_turn()


def item_of_a_turn_elsewhere() -> Talk:
    """An item names the turn of the other thread, and a thread that has had none."""
    talk = two_threads().start_turn()
    talk.item(agent_message("m", "Hello"), thread=OTHER)
    return talk.end_turn()


def command_of_a_turn_elsewhere() -> Talk:
    """A command is begun on one thread, under the id of a turn that has ended on the other."""
    talk = two_threads().plain_turn().start_turn("turn_2", OTHER, "other")
    return talk.item(command("c", "completed"), thread=OTHER).end_turn("turn_2", OTHER)


def delta_of_an_open_item() -> Talk:
    """A delta of an item that is open names the other thread."""
    talk = two_threads().plain_turn().start_turn("turn_2").started(agent_message("m", ""), "turn_2")
    talk.delta("m", "Hel", "turn_2").delta("m", "lo", "turn_2", OTHER)
    return talk.completed(agent_message("m", "Hello"), "turn_2").end_turn("turn_2")


def end_on_no_thread() -> Talk:
    """The end of a turn names a thread that does not exist."""
    talk = Talk().start_thread().start_turn().message("m", "Hello").status("idle")
    return talk.turn_completed(thread="thr_0")


def rolled_back(talk: Talk, *left: str) -> Talk:
    """The last turn of the thread is dropped; these plain turns are left."""
    talk.asks("thread/rollback", threadId=THREAD, numTurns=1)
    turns = [stored_plain_turn(turn) for turn in left]
    return talk.answers({"thread": thread_object(turns=turns)})


def counted_anew() -> Talk:
    """The ids are places in the thread: a turn that was dropped leaves its own to the next."""
    return rolled_back(Talk().start_thread().plain_turn()).plain_turn()


def counted_anew_twice() -> Talk:
    """The same with a second turn, which is announced before it is answered, and again."""
    talk = rolled_back(Talk().start_thread().plain_turn().plain_turn("turn_2"), TURN)
    talk.ask_turn(text="hello").status("active").turn_started("turn_2").reply_turn("turn_2")
    talk.item(user_message("turn_2-user", "hello"), "turn_2").end_turn("turn_2")
    return rolled_back(talk, TURN).plain_turn("turn_2")


def ended_twice_after_a_rollback() -> Talk:
    """A turn under an id that was dropped ends twice."""
    return counted_anew().turn_completed()


def wrong_beside_an_interrupted_turn() -> Talk:
    """One of two turns of one id completes a message wrongly; the other is interrupted then."""
    talk = two_threads().start_turn().start_turn(TURN, OTHER, "other").interrupt(TURN, OTHER)
    talk.answers({}).started(agent_message("m", "")).delta("m", "Hello")
    talk.completed(agent_message("m", "Hallo")).end_turn(thread=OTHER, status="interrupted")
    return talk.end_turn()


def id_again_on_its_thread() -> Talk:
    """The second turn of a thread has the id of the first; another thread has that id too."""
    talk = two_threads().plain_turn().plain_turn(TURN, OTHER)
    return talk.ask_turn().reply_turn()


def id_of_the_history() -> Talk:
    """A turn of a fork has the id of one that it was forked with."""
    talk = Talk().start_thread().plain_turn().asks("thread/fork", threadId=THREAD)
    forked = thread_object(OTHER, preview="hello", turns=[stored_plain_turn()])
    talk.answers({"thread": forked})
    return talk.tells("thread/started", thread=thread_object(OTHER)).plain_turn(TURN, OTHER)


def id_of_a_copied_turn() -> Talk:
    """The first turn of a fork has the id of a copied one, after a rollback of the thread."""
    talk = past(TURN, "turn_2").rolls_back(*stored(TURN)).plain_turn("turn_3")
    talk.forks(*stored(TURN, "turn_3")).announced()
    return talk.plain_turn("turn_3", FORK)


def dropped_id_again() -> Talk:
    """The turn after a rollback has the id of the dropped one: turns are counted anew."""
    return past(TURN, "turn_2").rolls_back(*stored(TURN)).plain_turn("turn_2")


LEGAL: list[Legal] = [
    Legal("turn.ids-unique", "dropped-id-again", dropped_id_again),
    Legal("turn.ids-unique", "turns-counted-per-thread", counted_per_thread),
    Legal("turn.ids-unique", "turns-of-one-id-at-once", counted_at_once),
    Legal("turn.completed-once", "turns-counted-anew-after-a-rollback", counted_anew),
    Legal("turn.completed-once", "turns-counted-anew-twice", counted_anew_twice),
    Legal("turn.known-thread", "one-of-two-turns-of-one-id-interrupted", counted_and_interrupted),
    Legal("turn.known-thread", "late-word-of-another-thread", late_word_of_another),
]
ILLEGAL: list[Illegal] = [
    Illegal("item.known-turn", "item-of-a-turn-elsewhere", item_of_a_turn_elsewhere),
    Illegal("item.known-turn", "command-of-a-turn-elsewhere", command_of_a_turn_elsewhere),
    Illegal("turn.known-thread", "delta-of-an-open-item", delta_of_an_open_item),
    Illegal("turn.known-thread", "end-on-no-thread", end_on_no_thread),
    Illegal("turn.completed-once", "ended-twice-after-a-rollback", ended_twice_after_a_rollback),
    Illegal(
        "turn.completed-once",
        "ended-twice",
        lambda: Talk().start_thread().plain_turn().turn_completed(),
    ),
    Illegal(
        "delta.rebuilds-reply",
        "wrong-beside-an-interrupted-turn-of-its-id",
        wrong_beside_an_interrupted_turn,
    ),
    Illegal("turn.ids-unique", "id-again-on-its-thread", id_again_on_its_thread),
    Illegal("turn.ids-unique", "id-of-the-history", id_of_the_history),
    Illegal("turn.ids-unique", "id-of-a-copied-turn", id_of_a_copied_turn),
]
