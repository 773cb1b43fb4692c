"""Good conversations about threads that are resumed, forked, rolled back and read."""

from collections.abc import Callable

from harness.trace.trace import Trace
from tests.rules.history_talk import FORK, Past, stored
from tests.rules.told_talk import Told
from tests.rules.traces import TURN, agent_message, command, turn_object, user_message


def resumed() -> Trace:
    """A thread with two turns is left, and opened again; then it takes another turn."""
    talk = Past("resumed").start_thread().plain_turn().plain_turn("turn_2").leaves()
    talk.resumes(*stored(TURN, "turn_2"))
    return talk.status("idle").plain_turn("turn_3").trace()


def forked() -> Trace:
    """A thread with two turns is forked; then both take another turn."""
    talk = Past("forked").start_thread().plain_turn().plain_turn("turn_2")
    talk.forks(*stored(TURN, "turn_2")).announced()
    return talk.plain_turn("turn_3", FORK).plain_turn("turn_4").trace()


def rolled_back() -> Trace:
    """The last of three turns is dropped; the thread is read, and takes another turn."""
    talk = Past("rolled-back").start_thread()
    for turn in (TURN, "turn_2", "turn_3"):
        talk.plain_turn(turn)
    left = stored(TURN, "turn_2")
    talk.rolls_back(*left).read(*left).plain_turn("turn_4")
    return talk.trace()


def read_unloaded() -> Trace:
    """A thread that ran a command is left, and read while it is not loaded."""
    talk = Past("read-unloaded").start_thread().start_turn()
    done = command("c-1", "completed", aggregatedOutput="", exitCode=0)
    talk.item(done).message("m-1", "Done.").end_turn().leaves().loads()
    said = [user_message(f"{TURN}-user", "hello"), done, agent_message("m-1", "Done.")]
    return talk.read(turn_object(status="completed", items=said)).loads().trace()


def attached() -> Trace:
    """The same client resumes its thread in the middle of a turn, and another one does too."""
    talk = Past("attached").start_thread().start_turn().message("m-1", "One.")
    talk.started(agent_message("m-2", "")).delta("m-2", "Tw")
    said = [agent_message("m-1", "One."), agent_message("m-2", "Tw")]
    items = [user_message(f"{TURN}-user", "hello"), *said]
    active = {"type": "active", "activeFlags": []}
    for connection in ("c1", "c2"):
        talk.on(connection).resumes(turn_object(items=items), status=active)
    for connection in ("c1", "c2"):
        talk.on(connection).delta("m-2", "o.").completed(agent_message("m-2", "Two.")).end_turn()
    return talk.trace()


def sent_histories() -> Trace:
    """The model is sent the history of a thread, after a rollback, and in a fork."""
    talk = Told("sent-histories").start_thread().turn("about apples").turn("about pears")
    talk.drops().turn("about plums").drops().copies()
    return talk.turn("about figs", thread=FORK).turn("about nuts").trace()


HISTORY: dict[str, Callable[[], Trace]] = {
    "resumed": resumed,
    "forked": forked,
    "rolled-back": rolled_back,
    "read-unloaded": read_unloaded,
    "attached": attached,
    "sent-histories": sent_histories,
}
