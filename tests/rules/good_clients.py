"""Good conversations of two clients of one thread: notifications, approvals, unsubscribing.

A part of `good_traces`, which stores them.
"""

from collections.abc import Callable

from harness.trace.trace import Trace
from tests.rules.approval_talk import COMMAND, command_item
from tests.rules.edges_adversary import Two, begins, completes, piece, whole
from tests.rules.traces import agent_message


def asked_both(talk: Two, item: str = "call_1") -> Two:
    """A command begins, and both clients are asked about it with one id."""
    talk.both(begins(command_item(item)))
    talk.on("c2").question(item, COMMAND).on("c1")
    return talk.says(talk.last.json)


def settled(talk: Two, decision: str, by: str = "c2", item: str = "call_1") -> Two:
    """One client answers; both get the resolution, and the end of the command."""
    talk.on(by).decides(decision)
    for connection in ("c2", "c1"):
        talk.on(connection).resolved()
    status = "completed" if decision == "accept" else "declined"
    return talk.both(completes(command_item(item, status)))


def shared(name: str = "", decision: str = "accept", by: str = "c2") -> Two:
    """A turn of the first client with a message and a command that the second one decides on."""
    talk = Two(name).opened("untrusted").begun()
    talk.both(begins(agent_message("m", "")), piece("m", "I will "), piece("m", "write."))
    talk.both(completes(agent_message("m", "I will write.")))
    return settled(asked_both(talk), decision, by).ended()


def shared_turn() -> Trace:
    """Two clients of a thread are told all of a turn, and the second one accepts a command."""
    return shared("shared-turn").trace()


def shared_denial() -> Trace:
    """The same, and the first client declines it, which the second one was asked about too."""
    return shared("shared-denial", "decline", "c1").trace()


def left_to_another() -> Trace:
    """The second client leaves the thread, and is told no more of the next turn of the first."""
    talk = Two("left-to-another").opened().begun().both(*whole(agent_message("m", "Yes."))).ended()
    talk.on("c2").leaves().on("c1")
    return talk.plain_turn("turn_2").trace()


CLIENTS: dict[str, Callable[[], Trace]] = {
    "shared-turn": shared_turn,
    "shared-denial": shared_denial,
    "left-to-another": left_to_another,
}
