"""Cases of the rules on turn/steer, accepted and rejected."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened, running
from tests.rules.good_traces import steer
from tests.rules.traces import TURN, Talk, command, user_message

FIRST = "request turn/steer id 3"
MORE = "and more"


def steered(result: Any = None) -> Talk:
    """A running turn, its model call, and input that was granted: seqs 9 and 10."""
    return steer(running().calls("hello"), MORE).answers(result or {"turnId": TURN})


def refused() -> Talk:
    """A running turn and input that was refused: seqs 9 and 10."""
    return steer(running().calls("hello"), MORE).refuses()


def elsewhere() -> Talk:
    """A turn of another thread is steered, one that had ended, and one that nobody knows."""
    talk = opened().start_thread("thr_2").start_turn()
    steer(talk, "there", thread="thr_2").refuses().end_turn()
    return steer(steer(talk, "late").refuses(), "who", expected="turn_9", thread="thr_2")


def unjudged() -> Talk:
    """No steer proves anything: without text, with another input's text, cut off, compacted."""
    talk = running().calls("hello", MORE, MORE)
    talk.asks("turn/steer", threadId="thr_1", expectedTurnId=TURN, input=[]).refuses()
    steer(talk, "hello").refuses()
    steer(talk, "twice").refuses()
    steer(talk, "twice").refuses()
    steer(talk, MORE).answers({"turnId": TURN})
    return talk.end_turn(status="interrupted").asks("thread/compact/start").answers({})


CASES = [
    Case(
        rule="steer.precondition",
        good=elsewhere().refuses(),
        witnesses=("request turn/steer id 4", "request turn/steer id 5", "request turn/steer id 6"),
        bad=elsewhere().answers({"turnId": "turn_9"}),
        found=(Found("request turn/steer id 6", (18, 19)),),
        # What crosses the end, or the beginning, of its turn may be granted or not.
        not_exercised=steer(steer(opened().ask_turn(), "early").refuses().reply_turn(), "cross")
        .turn_completed()
        .answers({"turnId": TURN}),
    ),
    Case(
        rule="steer.names-turn",
        good=steered(),
        witnesses=(FIRST,),
        bad=steered({"turnId": "turn_2"}),
        found=(Found(FIRST, (9, 10)),),
        not_exercised=refused(),
    ),
    Case(
        rule="steer.starts-no-turn",
        good=steered().end_turn(),
        witnesses=(FIRST,),
        bad=steered().turn_started("turn_2"),
        found=(Found(FIRST, (9, 10, 11)),),
        not_exercised=steered().asks("review/start").answers({}).turn_started("turn_2"),
    ),
    Case(
        rule="steer.granted",
        good=steered(),
        witnesses=(FIRST,),
        bad=refused().calls("hello", call=2).item(command("c-1", "completed")).end_turn(),
        found=(Found(FIRST, (9, 10, 11, 14)),),
        not_exercised=refused().end_turn(),
    ),
    Case(
        rule="interrupt.granted",
        good=running().interrupt().answers({}),
        witnesses=("request turn/interrupt id 3",),
        bad=opened().ask_turn().reply_turn().interrupt().refuses().turn_started().end_turn(),
        found=(Found("request turn/interrupt id 3", (5, 6, 7, 9), Level.SHOULD),),
        not_exercised=running().interrupt("turn_9").refuses().interrupt().refuses().end_turn(),
    ),
    Case(
        rule="steer.input-kept",
        good=steered().item(user_message("u-2", MORE)).end_turn(),
        witnesses=(FIRST,),
        bad=steered().end_turn(),
        found=(Found(FIRST, (9, 10, 12)),),
        not_exercised=unjudged(),
    ),
    Case(
        rule="steer.input-arrives",
        good=steered().calls("hello", MORE, call=2).end_turn(),
        witnesses=(FIRST,),
        bad=steered().item(user_message("u-2", MORE)).end_turn(),
        found=(Found(FIRST, (9, 10, 14), Level.SHOULD),),
        not_exercised=unjudged(),
    ),
    Case(
        rule="steer.applied-once",
        good=steered().item(user_message("u-2", MORE)).calls("hello", MORE, call=2).end_turn(),
        witnesses=(FIRST,),
        bad=steered().calls("hello", MORE, MORE, call=2).end_turn(),
        found=(Found(FIRST, (9, 10), Level.SHOULD),),
        not_exercised=unjudged(),
    ),
    Case(
        rule="steer.refused-unheard",
        good=refused().end_turn(),
        witnesses=(FIRST,),
        bad=refused().calls("hello", MORE, call=2).end_turn(),
        found=(Found(FIRST, (9, 10)),),
        not_exercised=unjudged(),
    ),
]
