"""Edge cases of the number of turns of a fork, of threads that an earlier process used."""

from typing import Any

from harness.trace.marks import Closed, ServerEnded
from tests.rules.edge import Illegal, Legal
from tests.rules.history_talk import Past, past, stored
from tests.rules.traces import TURN, turn_object, user_message

COPIES = "fork.copies-history"


def cut_off(status: str = "interrupted") -> dict[str, Any]:
    """Return the turn that the killed server ran, as it is shown."""
    return turn_object("turn_2", status, items=[user_message("turn_2-user", "second")])


def killed() -> Past:
    """Return a talk whose server was killed in the second turn."""
    talk = past(TURN).start_turn("turn_2", text="second")
    return talk.mark(ServerEnded(killed=True)).mark(Closed("c1")).on("c2")


def rolled_back(talk: Past) -> Past:
    """Add a rollback of the last turn."""
    return talk.rolls_back(*stored(TURN))


def interrupted(status: str) -> Past:
    """Return a talk in which a turn is interrupted and then copied with this status."""
    talk = past(TURN).start_turn("turn_2", text="second").interrupt("turn_2").answers({})
    talk.end_turn("turn_2", status="interrupted")
    return talk.forks(*stored(TURN), cut_off(status)).announced()


LEGAL: list[Legal] = [
    Legal(COPIES, "interrupted-turn-as-interrupted", lambda: interrupted("interrupted")),
    Legal(
        COPIES,
        "cut-off-turn-copied",
        lambda: killed().read(*stored(TURN), cut_off()).forks(*stored(TURN), cut_off()).announced(),
    ),
    Legal(
        COPIES,
        "cut-off-turn-never-shown",
        lambda: killed().read(*stored(TURN)).forks(*stored(TURN)).announced(),
    ),
    Legal(
        COPIES,
        "dropped-since-it-was-shown",
        lambda: (
            rolled_back(killed().read(*stored(TURN), cut_off())).forks(*stored(TURN)).announced()
        ),
    ),
]

ILLEGAL: list[Illegal] = [
    Illegal(COPIES, "interrupted-turn-as-completed", lambda: interrupted("completed")),
    Illegal(
        COPIES,
        "cut-off-turn-not-copied",
        lambda: killed().read(*stored(TURN), cut_off()).forks(*stored(TURN)).announced(),
    ),
    Illegal(
        COPIES,
        "resumed-turn-not-copied",
        lambda: killed().resumes(*stored(TURN), cut_off()).forks(*stored(TURN)).announced(),
    ),
]
