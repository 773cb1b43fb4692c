"""Cases of the rules on turns, their order, and their errors."""

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened, running, silent
from tests.rules.traces import THREAD, TROUBLE, TURN, Talk, agent_message, turn_object

SUBJECT = "turn turn_1"
MISSPELT = {"message": "too long", "agentErrorInfo": "contextWindowExceeded"}
KEYED = {"message": "cut", "agentErrorInfo": {"responseStreamDisconnected": {"status": 502}}}


def foreign() -> Talk:
    """A turn of another client of the process: nothing here asked for it or opened its thread."""
    return Talk().turn_started().started(agent_message("m-1", ""))


CASES = [
    Case(
        rule="turn.start-reply",
        good=opened()
        .ask_turn()
        .answers({"turn": {"id": TURN, "status": "inProgress", "items": []}}),
        witnesses=(SUBJECT,),
        bad=opened().ask_turn().answers({"turn": turn_object(status="completed", error=TROUBLE)}),
        found=(Found(SUBJECT, (4,)),),
        not_exercised=opened().ask_turn().refuses(),
    ),
    Case(
        rule="turn.started-announced",
        good=opened().ask_turn().turn_started().reply_turn(),
        witnesses=(SUBJECT,),
        bad=opened().ask_turn().reply_turn().turn_started("turn_2"),
        found=(Found(SUBJECT, (4,)),),
        not_exercised=foreign(),
    ),
    Case(
        rule="turn.started-carries-reply",
        good=opened().ask_turn().turn_started().reply_turn(),
        witnesses=(SUBJECT,),
        bad=opened()
        .ask_turn()
        .reply_turn()
        .tells("turn/started", threadId=THREAD, turn=turn_object(status="completed")),
        found=(Found(SUBJECT, (4, 5), Level.SHOULD),),
        not_exercised=foreign(),
    ),
    Case(
        rule="turn.started-once",
        good=running(),
        witnesses=(SUBJECT,),
        bad=running().turn_started(),
        found=(Found(SUBJECT, (6, 9)),),
        not_exercised=foreign().turn_started(),
    ),
    Case(
        rule="turn.completed-once",
        good=running().turn_completed(),
        witnesses=(SUBJECT,),
        bad=running().turn_completed().turn_completed(status="interrupted"),
        found=(Found(SUBJECT, (9, 10)),),
        not_exercised=foreign().turn_completed().turn_completed(),
    ),
    Case(
        rule="turn.completes",
        good=running().turn_completed(status="failed", error=TROUBLE),
        witnesses=(SUBJECT,),
        bad=running().ask_turn().reply_turn("turn_2").turn_completed("turn_2"),
        found=(Found(SUBJECT, (4,)),),
        not_exercised=foreign(),
    ),
    Case(
        rule="turn.ids-unique",
        good=running().turn_completed().start_turn("turn_2"),
        witnesses=("turn turn_2",),
        bad=running().turn_completed().ask_turn().reply_turn(),
        found=(Found(SUBJECT, (4, 11)),),
        # A turn/start while the turn runs is answered with the running turn: the text is silent.
        not_exercised=running().ask_turn().reply_turn(),
    ),
    Case(
        rule="turn.interrupt-ends-interrupted",
        good=running().interrupt().turn_completed(status="interrupted").answers({}),
        witnesses=(SUBJECT,),
        bad=running().interrupt().answers({}).turn_completed(),
        found=(Found(SUBJECT, (10, 11)),),
        # It completed before the answer: the two crossed. Then a turn of another thread is named.
        not_exercised=running()
        .interrupt()
        .turn_completed()
        .answers({})
        .interrupt("turn_9")
        .refuses()
        .start_turn("turn_2")
        .interrupt("turn_2", "thr_2")
        .answers({})
        .turn_completed("turn_2"),
    ),
    Case(
        rule="turn.interrupted-when-asked",
        good=running().interrupt().refuses().turn_completed(status="interrupted"),
        witnesses=(SUBJECT,),
        # The interrupt that came too late for the first turn ended the second.
        bad=running()
        .interrupt()
        .turn_completed()
        .answers({})
        .start_turn("turn_2")
        .turn_completed("turn_2", status="interrupted"),
        found=(Found("turn turn_2", (9, 13, 18), Level.SHOULD),),
        # A second turn/start may have ended the first turn; the second ended as completed; which
        # turn the interrupt meant that ended the third is not said.
        not_exercised=running()
        .ask_turn(text="again")
        .turn_completed(status="interrupted")
        .reply_turn("turn_2")
        .turn_started("turn_2")
        .turn_completed("turn_2")
        .start_thread("thr_2")
        .start_turn("turn_3", "thr_2")
        .interrupt("turn_9", "thr_2")
        .answers({})
        .turn_completed("turn_3", "thr_2", status="interrupted"),
    ),
    Case(
        rule="turn.started-first",
        good=running().turn_completed(),
        witnesses=(SUBJECT,),
        bad=opened()
        .ask_turn()
        .reply_turn()
        .item(agent_message("m-1", ""))
        .turn_started()
        .turn_completed()
        .turn_completed("turn_2"),
        found=(Found(SUBJECT, (5, 7)), Found("turn turn_2", (9,))),
        not_exercised=Talk()
        .asks("thread/resume", threadId=THREAD)
        .answers({"thread": {"id": THREAD}})
        .item(agent_message("m-1", ""))
        .turn_completed(),
    ),
    Case(
        rule="turn.completed-last",
        good=running().turn_completed().tells("turn/diff/updated", threadId=THREAD, turnId=TURN),
        witnesses=(SUBJECT,),
        bad=running()
        .turn_completed()
        .started(agent_message("m-1", ""))
        .delta("m-1", "a")
        .completed(agent_message("m-1", "a")),
        found=(Found(SUBJECT, (9, 10)),),
        not_exercised=foreign().turn_completed().completed(agent_message("m-1", "")),
    ),
    Case(
        rule="turn.known-thread",
        good=running().turn_completed(),
        witnesses=(SUBJECT,),
        bad=running()
        .started(agent_message("m-1", ""))
        .delta("m-1", "a", thread="thr_3")
        .failing(will_retry=True, thread="thr_2")
        .turn_completed(thread="thr_4"),
        found=(
            Found(SUBJECT, (10,)),
            Found(SUBJECT, (11,), Level.SHOULD),
            Found(SUBJECT, (12,)),
        ),
        # Of another client; and one that may be of another client's turn of the same id.
        not_exercised=foreign()
        .turn_completed(thread="thr_7")
        .start_thread("thr_2")
        .start_turn("turn_2", "thr_2")
        .turn_completed(thread="thr_8"),
    ),
    Case(
        rule="item.known-turn",
        good=running().turn_completed(),
        witnesses=(SUBJECT,),
        bad=running()
        .message("m-1", "a", turn="turn_7")
        .delta("m-2", "a", turn="turn_8")
        .turn_completed(),
        found=(Found("turn turn_7", (9,)), Found("turn turn_8", (12,))),
        # Another client's; one named by an answer to a method not shown; one that only ends.
        not_exercised=foreign()
        .start_thread("thr_2")
        .asks("review/start", threadId="thr_2")
        .answers({"turn": turn_object("turn_2")})
        .started(agent_message("m-1", ""), "turn_2", "thr_2")
        .started(agent_message("m-1", ""), "turn_3", "thr_2")
        .turn_completed("turn_3", "thr_2"),
    ),
    Case(
        rule="turn.items-empty",
        good=running(),
        witnesses=(SUBJECT,),
        bad=running().tells(
            "turn/completed",
            threadId=THREAD,
            turn=turn_object(status="completed", items=[agent_message("m-1", "")]),
        ),
        found=(Found(SUBJECT, (9,)),),
        not_exercised=silent().read(turn_object(items=[agent_message("m-1", "")])),
    ),
    Case(
        rule="turn.error-iff-failed",
        good=running().turn_completed(status="failed", error=TROUBLE),
        witnesses=(SUBJECT,),
        bad=running()
        .turn_completed(status="failed")
        .turn_completed("turn_2", status="interrupted", error=TROUBLE),
        found=(Found(SUBJECT, (9,)), Found("turn turn_2", (10,))),
        not_exercised=opened().ask_turn().reply_turn(),
    ),
    Case(
        rule="turn.terminal-status",
        good=running().turn_completed(status="interrupted"),
        witnesses=(SUBJECT,),
        bad=running().turn_completed(status="inProgress"),
        found=(Found(SUBJECT, (9,)),),
        not_exercised=running(),
    ),
    Case(
        rule="turn.id-shape",
        good=running(),
        witnesses=("turn ids",),
        bad=opened().ask_turn().reply_turn("a-1").ask_turn().reply_turn("a-2"),
        found=(Found("turn ids", (4,), Level.SHOULD),),
        not_exercised=Talk().turn_started("a-1"),
    ),
    Case(
        rule="turn-error.info-spelling",
        good=running().failing(will_retry=True),
        witnesses=("error of turn turn_1",),
        bad=running()
        .turn_completed(status="failed", error=MISSPELT)
        .tells("error", threadId=THREAD, turnId="turn_2", willRetry=True, error=KEYED),
        found=(
            Found("error of turn turn_1", (9,)),
            Found("error of turn turn_2", (10,), Level.INFO),
        ),
        not_exercised=running().turn_completed(
            status="failed", error={"message": "?", "agentErrorInfo": "serverOverloaded"}
        ),
    ),
    Case(
        rule="error.names-turn",
        good=running().failing(will_retry=True),
        witnesses=(SUBJECT,),
        bad=running()
        .failing(will_retry=True, turn="turn_7")
        .ask_turn()
        .reply_turn("turn_2")
        .turn_completed("turn_2")
        .failing(will_retry=False, turn="turn_2"),
        found=(
            Found("turn turn_2", (12, 13), Level.SHOULD),
            Found("turn turn_7", (9,)),
        ),
        # An error of a turn that is announced after it, and one of another client's thread.
        not_exercised=opened()
        .ask_turn()
        .failing(will_retry=True)
        .reply_turn()
        .failing(will_retry=True, turn="turn_9", thread="thr_9"),
    ),
    Case(
        rule="error.terminal-carries-cause",
        good=running().failing(will_retry=False).turn_completed(status="failed", error=TROUBLE),
        witnesses=(SUBJECT,),
        bad=running()
        .failing(will_retry=False)
        .turn_completed()
        .start_turn("turn_2")
        .turn_completed("turn_2", status="failed", error={"message": " "}),
        found=(
            Found(SUBJECT, (9, 10), Level.SHOULD),
            Found("turn turn_2", (17,), Level.SHOULD),
        ),
        not_exercised=running().failing(will_retry=False).turn_completed(status="interrupted"),
    ),
]
