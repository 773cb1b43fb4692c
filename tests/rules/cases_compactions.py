"""Cases of the rules on compaction at the client's request."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened
from tests.rules.traces import THREAD, Talk

ITEM = {"type": "contextCompaction", "id": "cut"}
ASKED, AGAIN = (f"request thread/compact/start id {number}" for number in (3, 4))


def used() -> Talk:
    """Return a talk with a thread with a turn: seqs 0 to 14."""
    return opened().plain_turn()


def asked(talk: Talk | None = None, result: Any = None) -> Talk:
    """Add thread/compact/start and its result, by default to `used()`."""
    talk = used() if talk is None else talk
    talk.asks("thread/compact/start", threadId=THREAD)
    return talk.answers({} if result is None else result)


def compacted(talk: Talk, number: int = 2, status: str = "completed") -> Talk:
    """Add the turn of a compaction with its item."""
    turn = f"turn_{number}"
    talk.turn_started(turn).status("active").item({**ITEM, "id": f"cut_{number}"}, turn)
    return talk.end_turn(turn, status=status)


def bare(talk: Talk, status: str = "completed") -> Talk:
    """Add the turn of a compaction without its item."""
    return talk.turn_started("turn_2").status("active").end_turn("turn_2", status=status)


def unclear() -> Talk:
    """Return a talk with compactions that a rule cannot judge: without history, rejected,
    interrupted, and after an unsubscription."""
    talk = opened().asks("thread/compact/start", threadId=THREAD).answers({}).plain_turn()
    talk.asks("thread/compact/start", threadId=THREAD).refuses()
    bare(asked(talk).interrupt("turn_2").answers({}), "interrupted")
    asked(talk).asks("thread/unsubscribe", threadId=THREAD)
    return talk.answers({"status": "unsubscribed"})


CASES = [
    Case(
        rule="compact.reply-empty",
        good=asked(),
        witnesses=(ASKED,),
        bad=asked(asked(result=[]), {"turnId": "turn_2"}),
        found=(Found(ASKED, (15, 16)), Found(AGAIN, (17, 18), Level.INFO)),
        not_exercised=used().asks("thread/compact/start", threadId=THREAD).refuses(),
    ),
    Case(
        rule="compact.told",
        # A server may tell of it in a way of its own.
        good=asked().tells("thread/compacted", threadId=THREAD, turnId="turn_2"),
        witnesses=(ASKED,),
        bad=asked().tells("thread/compacted", threadId="thr_2", turnId="turn_2"),
        found=(Found(ASKED, (15, 16), Level.SHOULD),),
        not_exercised=unclear(),
    ),
    Case(
        rule="compact.item-emitted",
        good=compacted(asked(compacted(asked())), 3),
        witnesses=(ASKED, AGAIN),
        # One item cannot stand for two compactions.
        bad=bare(asked(compacted(asked()).plain_turn("turn_3"))),
        found=(Found("request thread/compact/start id 5", (35, 36), Level.SHOULD),),
        not_exercised=unclear(),
    ),
]
