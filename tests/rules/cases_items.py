"""Cases of the rules on items and their deltas."""

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened, running
from tests.rules.traces import THREAD, TURN, Talk, agent_message, user_message

SUBJECT = "item m-1 of turn turn_1"
USER = "item turn_1-user of turn turn_1"
SUMMARY = "item/reasoning/summaryTextDelta"
RAW = "item/reasoning/textDelta"
PART_ADDED = "item/reasoning/summaryPartAdded"
EMPTY = {"type": "reasoning", "id": "r-1", "summary": [], "content": []}


def resumed() -> Talk:
    """A client that joined in the middle of a turn: seqs 0 and 1."""
    return Talk().asks("thread/resume", threadId=THREAD).answers({"thread": {"id": THREAD}})


def thinking() -> Talk:
    """A running turn with reasoning that has streamed two summary parts: seqs 0 to 12."""
    talk = running().started(EMPTY)
    talk.delta("r-1", "a", method=SUMMARY, summaryIndex=0)
    talk.delta("r-1", "b", method=SUMMARY, summaryIndex=0)
    return talk.delta("r-1", "c", method=SUMMARY, summaryIndex=1)


CASES = [
    Case(
        rule="item.started-before-delta",
        good=running().message("m-1", "a", "b"),
        witnesses=(SUBJECT,),
        bad=running()
        .delta("m-1", "a")
        .delta("m-1", "b")
        .tells(PART_ADDED, threadId=THREAD, turnId=TURN, itemId="r-1", summaryIndex=0),
        found=(Found(SUBJECT, (9,)), Found("item r-1 of turn turn_1", (11,))),
        not_exercised=resumed().delta("m-1", "b"),
    ),
    Case(
        rule="item.completed-after-started",
        good=running(),
        witnesses=(USER,),
        bad=opened()
        .ask_turn()
        .reply_turn()
        .turn_started()
        .completed(agent_message("m-1", ""))
        .completed(agent_message("m-1", "")),
        found=(Found(SUBJECT, (6,)),),
        not_exercised=resumed().completed(agent_message("m-1", "")),
    ),
    Case(
        rule="item.completed-once",
        good=running(),
        witnesses=(USER,),
        bad=running().completed(user_message("turn_1-user", "hello")),
        found=(Found(USER, (8, 9)),),
        not_exercised=Talk().turn_started().item(agent_message("m-1", "")),
    ),
    Case(
        rule="item.completes",
        good=running(),
        witnesses=(USER,),
        bad=running()
        .started(agent_message("m-1", ""))
        .turn_completed()
        .start_turn("turn_2")
        .started(agent_message("m-1", ""), "turn_2")
        .turn_completed("turn_2", status="interrupted"),
        found=(Found(SUBJECT, (9,)), Found("item m-1 of turn turn_2", (17,), Level.INFO)),
        # The turn itself never ends: that is turn.completes' to say.
        not_exercised=opened()
        .ask_turn()
        .reply_turn()
        .turn_started()
        .started(agent_message("m-1", "")),
    ),
    Case(
        rule="item.same-type",
        good=running(),
        witnesses=(USER,),
        bad=running().started(agent_message("m-1", "")).completed({**EMPTY, "id": "m-1"}),
        found=(Found(SUBJECT, (9, 10)),),
        not_exercised=resumed().completed(agent_message("m-1", "")),
    ),
    Case(
        rule="item.ids-not-reused",
        good=running().message("m-1", "a").turn_completed(),
        witnesses=(SUBJECT,),
        bad=running()
        .message("m-1", "a")
        .message("m-1", "b")
        .started(agent_message("m-2", ""))
        .failing(will_retry=True)
        .message("m-2", "c"),
        found=(
            Found(SUBJECT, (9, 12), Level.SHOULD),
            Found("item m-2 of turn turn_1", (15, 17), Level.INFO),
        ),
        # The same id in two turns is two items: messages name the turn.
        not_exercised=opened()
        .ask_turn()
        .reply_turn()
        .turn_started()
        .message("m-1", "a")
        .turn_completed()
        .ask_turn()
        .reply_turn("turn_2")
        .turn_started("turn_2")
        .message("m-1", "b", turn="turn_2"),
    ),
    Case(
        rule="delta.rebuilds-reply",
        good=running().message("m-1", "Hel", "lo"),
        witnesses=(SUBJECT,),
        bad=running()
        .started(agent_message("m-1", ""))
        .delta("m-1", "Hel")
        .delta("m-1", "o")
        .completed(agent_message("m-1", "Hello")),
        found=(Found(SUBJECT, (10, 11, 12)),),
        # No deltas; a plan that differs from its deltas; a message whose start was not seen.
        not_exercised=running()
        .item(agent_message("m-1", "all at once"))
        .started({"type": "plan", "id": "p-1", "text": ""})
        .delta("p-1", "A", method="item/plan/delta")
        .completed({"type": "plan", "id": "p-1", "text": "B"})
        .delta("m-3", "lo")
        .completed(agent_message("m-3", "Hello")),
    ),
    Case(
        rule="delta.reasoning-summary",
        good=thinking().completed({**EMPTY, "summary": ["ab", "c", "whole"]}),
        witnesses=("item r-1 of turn turn_1",),
        bad=thinking().completed({**EMPTY, "summary": ["ab"]}),
        found=(Found("item r-1 of turn turn_1", (10, 12, 13), Level.SHOULD),),
        not_exercised=running().started(EMPTY).completed({**EMPTY, "summary": ["ab"]}),
    ),
    Case(
        rule="delta.reasoning-content",
        good=running()
        .started(EMPTY)
        .delta("r-1", "a", method=RAW, contentIndex=0)
        .delta("r-1", "b", method=RAW, contentIndex=0)
        .completed({**EMPTY, "content": ["ab", "whole"]}),
        witnesses=("item r-1 of turn turn_1",),
        bad=running()
        .started(EMPTY)
        .delta("r-1", "a", method=RAW, contentIndex=1)
        .delta("r-1", "b", method=RAW, contentIndex=2)
        .completed({**EMPTY, "content": ["b", "a"]}),
        found=(Found("item r-1 of turn turn_1", (10, 11, 12), Level.SHOULD),),
        not_exercised=thinking().completed({**EMPTY, "content": ["ab"]}),
    ),
    Case(
        rule="delta.summary-part-announced",
        good=running()
        .started(EMPTY)
        .delta("r-1", "a", method=SUMMARY, summaryIndex=0)
        .tells(PART_ADDED, threadId=THREAD, turnId=TURN, itemId="r-1", summaryIndex=1)
        .delta("r-1", "b", method=SUMMARY, summaryIndex=1),
        witnesses=("item r-1 of turn turn_1",),
        bad=thinking(),
        found=(Found("item r-1 of turn turn_1", (11, 12), Level.SHOULD),),
        # One section only, twice: the second item begins anew.
        not_exercised=running()
        .started(EMPTY)
        .delta("r-1", "a", method=SUMMARY, summaryIndex=0)
        .started(EMPTY)
        .delta("r-1", "a", method=SUMMARY, summaryIndex=1),
    ),
    Case(
        rule="delta.kind-matches-item",
        good=running().message("m-1", "a"),
        witnesses=(SUBJECT,),
        bad=running()
        .started(agent_message("m-1", ""))
        .delta("m-1", "a", method="item/reasoning/textDelta", contentIndex=0)
        .delta("m-1", "b", method="item/reasoning/textDelta", contentIndex=0),
        found=(Found(SUBJECT, (9, 10)),),
        not_exercised=running().delta("m-1", "a"),
    ),
    Case(
        rule="user-message.echo",
        good=running(),
        witnesses=(USER,),
        bad=opened().ask_turn().turn_started().item(user_message("u-1", "hello?")).reply_turn(),
        found=(Found("item u-1 of turn turn_1", (3, 6), Level.SHOULD),),
        not_exercised=Talk().turn_started().item(user_message("u-1", "hi")),
    ),
]
