"""Cases of the rules on archiving: results and notifications."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened
from tests.rules.traces import THREAD, Talk, thread_object

ARCHIVED = "request thread/archive id 3"
AGAIN = "request thread/archive id 4"
BACK = "request thread/unarchive id 4"


def archives(talk: Talk, result: Any = None, *, told: bool = True, thread: str = THREAD) -> Talk:
    """Add thread/archive, its result and, if `told`, thread/archived."""
    talk.asks("thread/archive", threadId=thread).answers({} if result is None else result)
    return talk.tells("thread/archived", threadId=thread) if told else talk


def unarchives(talk: Talk, *, told: bool = True, thread: str = THREAD, given: str = "") -> Talk:
    """Add thread/unarchive, its result and, if `told`, thread/unarchived."""
    talk.asks("thread/unarchive", threadId=thread)
    shown = thread_object(given or thread, preview="hello", status={"type": "notLoaded"})
    talk.answers({"thread": shown})
    return talk.tells("thread/unarchived", threadId=thread) if told else talk


def used() -> Talk:
    """Return a talk with a thread with a turn: seqs 0 to 14."""
    return opened().plain_turn()


def put_away() -> Talk:
    """Return a talk with an archived thread with a turn: seqs 0 to 17."""
    return archives(used())


CASES = [
    Case(
        rule="archive.reply-empty",
        good=put_away(),
        witnesses=(ARCHIVED,),
        bad=archives(archives(used(), result=[]), {"archived": True}),
        found=(Found(ARCHIVED, (15, 16)), Found(AGAIN, (18, 19), Level.INFO)),
        not_exercised=used().asks("thread/archive", threadId=THREAD).refuses(),
    ),
    Case(
        rule="archive.told",
        good=put_away(),
        witnesses=(ARCHIVED,),
        # Told of another thread is not told of this one.
        bad=archives(used(), told=False).tells("thread/archived", threadId="thr_2"),
        found=(Found(ARCHIVED, (15, 16)),),
        not_exercised=archives(opened(), told=False, thread="thr_9"),
    ),
    Case(
        rule="unarchive.told",
        # The payload is not shown.
        good=unarchives(put_away(), told=False).tells("thread/unarchived"),
        witnesses=(BACK,),
        bad=unarchives(put_away(), told=False),
        found=(Found(BACK, (18, 19)),),
        # What was not in the archive need not be told to have left it.
        not_exercised=unarchives(used(), told=False),
    ),
    Case(
        rule="unarchive.restored-thread",
        good=unarchives(put_away()),
        witnesses=(f"thread {THREAD}",),
        bad=unarchives(put_away(), given="thr_2"),
        found=(Found(f"thread {THREAD}", (18, 19)),),
        not_exercised=put_away().asks("thread/unarchive", threadId=THREAD).refuses(),
    ),
]
