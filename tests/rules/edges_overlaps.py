"""Edge cases of rollbacks that overlap with another request, of one client or of two.

The order in which the server handles the two requests is open, and so is the order of the
responses, on two connections and on one, since the specification does not order responses.
"""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.edge import Illegal, Legal
from tests.rules.history_talk import Past, past, stored
from tests.rules.traces import THREAD, TURN, thread_object

DROPS, REMAINING = "rollback.drops", "rollback.remaining"
TWO, THREE = (TURN, "turn_2"), (TURN, "turn_2", "turn_3")


def followed(*turns: str) -> Past:
    """A thread with these turns, which a second client takes up."""
    return past(*turns).on("c2").resumes(*stored(*turns)).on("c1")


def rollback(talk: Past) -> int:
    """Ask for a rollback of one turn; gives the id of the request."""
    return talk.asks("thread/rollback", threadId=THREAD, numTurns=1).last.id


def read(talk: Past, method: str = "thread/read") -> int:
    """Ask for the turns; gives the id of the request."""
    more = {"includeTurns": True} if method == "thread/read" else {}
    return talk.asks(method, threadId=THREAD, **more).last.id


def answered(talk: Past, request: int, *turns: str) -> Past:
    whole: dict[str, Any] = {"turns": stored(*turns), "preview": "hello"}
    return talk.answers({"thread": thread_object(**whole)}, to=request)


def read_across(
    *shown: str, turns: tuple[str, ...] = TWO, on: str = "c1", sent_first: bool = True
) -> Past:
    """A client's read, asked for and answered on both sides of another one's rollback."""
    talk = followed(*turns)
    asked = read(talk) if sent_first else 0
    cut = rollback(talk.on("c2"))
    asked = asked or read(talk.on(on))
    answered(talk.on("c2"), cut, *turns[:-1])
    answered(talk.on("c1" if sent_first else on), asked, *shown)
    return talk.on("c1").read(*stored(*turns[:-1]))


def read_again_after(*shown: str) -> Past:
    """The read across a rollback shows what was; the one after it must not."""
    talk = read_across(*TWO)
    answered(talk, read(talk), *shown)
    return talk


def two_rollbacks(first: tuple[str, ...], second: tuple[str, ...], *left: str) -> Past:
    """Two clients drop a turn each at the same time; what their answers show, and what is left."""
    talk = followed(*THREE)
    one, other = rollback(talk), rollback(talk.on("c2"))
    answered(talk.on("c1"), one, *first)
    answered(talk.on("c2"), other, *second)
    return talk.on("c1").read(*stored(*left))


LEGAL: list[Legal] = [
    Legal(REMAINING, "a read done before a rollback of another", lambda: read_across(*TWO)),
    Legal(REMAINING, "a read done after a rollback of another", lambda: read_across(TURN)),
    Legal(
        REMAINING,
        "a read sent after a rollback and done before",
        lambda: read_across(*TWO, sent_first=False),
    ),
    Legal(
        REMAINING,
        "a read of the client that rolls back",
        lambda: read_across(*TWO, on="c2", sent_first=False),
    ),
    Legal(DROPS, "two at once in order", lambda: two_rollbacks(TWO, (TURN,), TURN)),
    Legal(DROPS, "two at once the second before", lambda: two_rollbacks((TURN,), TWO, TURN)),
]
ILLEGAL: list[Illegal] = [
    Illegal(
        REMAINING,
        "a read across a rollback lacks a turn that was left",
        lambda: read_across("turn_2", "turn_3", turns=THREE),
        Level.SHOULD,
    ),
    Illegal(
        REMAINING,
        "a read after both still has the turn",
        lambda: read_again_after(*TWO),
        Level.SHOULD,
    ),
    Illegal(
        REMAINING,
        "of two rollbacks at once one is lost",
        lambda: two_rollbacks(TWO, TWO, *TWO),
        Level.SHOULD,
    ),
]
