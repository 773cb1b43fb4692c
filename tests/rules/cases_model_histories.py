"""Cases of the rules on the history in model calls."""

from harness.judge.verdict import Level
from tests.rules.case import Case, Found
from tests.rules.history_talk import FORK, Past
from tests.rules.told_talk import answer
from tests.rules.traces import THREAD

APPLES, PEARS, PLUMS = "about apples", "about pears", "about plums"
SECOND, THIRD = "turn turn_2", "turn turn_3"


def told() -> Past:
    """Return a talk with a started thread: seqs 0 to 2."""
    return Past().start_thread()


def asks_about(
    talk: Past,
    number: int,
    text: str,
    *recalled: str,
    thread: str = THREAD,
    status: str = "completed",
) -> Past:
    """A turn with one model call that also contains other texts: three messages."""
    talk.ask_turn(thread, text).reply_turn(f"turn_{number}")
    talk.calls(text, call=number, recalled=recalled)
    talk.ends(number, texts=[{"text": answer(text)}])
    return talk.turn_completed(f"turn_{number}", thread, status)


def two(*recalled: str) -> Past:
    """Two turns: the second one's call contains these texts."""
    return asks_about(asks_about(told(), 1, APPLES), 2, PEARS, *recalled)


def dropped(*recalled: str) -> Past:
    """A turn after a rollback that dropped the second of two turns."""
    talk = two(APPLES, answer(APPLES)).rolls_back()
    return asks_about(talk, 3, PLUMS, *recalled)


def forked(*recalled: str) -> Past:
    """A turn in a thread, after another one in its fork."""
    talk = asks_about(told(), 1, APPLES).forks()
    asks_about(talk, 2, PEARS, APPLES, answer(APPLES), thread=FORK)
    return asks_about(talk, 3, PLUMS, *recalled)


def doubtful() -> Past:
    """A cut-off turn before a rollback and a compaction, and calls that do not name texts."""
    talk = asks_about(told(), 1, APPLES, status="interrupted").rolls_back()
    asks_about(talk, 2, PEARS, APPLES)
    talk.asks("thread/compact/start", threadId=THREAD).answers({})
    asks_about(talk, 3, PLUMS).ask_turn(text="about figs").reply_turn("turn_4")
    return talk.calls("about figs", call=4).turn_completed("turn_4")


CASES = [
    Case(
        rule="rollback.unheard",
        good=dropped(APPLES, answer(APPLES)),
        witnesses=(THIRD,),
        bad=dropped(APPLES, answer(APPLES), answer(PEARS)),
        found=(Found(THIRD, (6, 11, 13)),),
        not_exercised=doubtful(),
    ),
    Case(
        rule="model.history-sent",
        good=two(APPLES, answer(APPLES)),
        witnesses=(SECOND,),
        bad=two(APPLES),
        found=(Found(SECOND, (3, 5, 6, 8), Level.SHOULD),),
        not_exercised=doubtful(),
    ),
    Case(
        rule="model.other-threads-unheard",
        good=forked(APPLES, answer(APPLES)),
        witnesses=(THIRD,),
        bad=forked(APPLES, answer(APPLES), PEARS),
        found=(Found(THIRD, (8, 11, 13), Level.SHOULD),),
        not_exercised=doubtful(),
    ),
]
