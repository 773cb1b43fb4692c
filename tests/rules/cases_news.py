"""Cases of the rules on notifications about the model: usage, plans, rerouting, retries."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened
from tests.rules.good_traces import steer
from tests.rules.traces import THREAD, TURN, Talk, command, mcp_call, step

FIRST, SECOND = "turn turn_1", "turn turn_2"
LOOK, LEAP = step("look"), step("leap")
ADD = ("tiny", "add")
TOLD: dict[str, Any] = {"usage": 15, "plans": [[LOOK]], "answers": "other"}


def asked(talk: Talk | None = None, number: int = 1, **params: Any) -> Talk:
    """A turn that has begun and called its model: three messages, from the third on."""
    turn, before = f"turn_{number}", opened() if talk is None else talk
    talk = before.ask_turn(text=f"say {number}", **params).reply_turn(turn).turn_started(turn)
    return talk.calls(f"say {number}", call=number)


def over(talk: Talk, number: int = 1, status: str = "completed", **brought: Any) -> Talk:
    """The end of the call and of the turn."""
    return talk.ends(number, **brought).turn_completed(f"turn_{number}", status=status)


def unclear(**brought: Any) -> Talk:
    """Turns of which nothing follows: uncalled, nothing brought, cut off, two at once, resumed."""
    talk = opened().ask_turn(text="uncalled").reply_turn().ends(7, **brought).turn_completed()
    over(asked(talk, 2), 2)
    over(asked(talk, 3), 3, "interrupted", **brought)
    talk.ask_turn(text="a").reply_turn("turn_4").ask_turn(text="b").reply_turn("turn_5")
    talk.calls("a", "b", call=4).ends(4, **brought)
    talk.turn_completed("turn_4").turn_completed("turn_5")
    talk.asks("thread/resume", threadId=THREAD).refuses()
    return over(asked(talk, 6), 6, **brought)


def failing(
    talk: Talk, *outcomes: str, turn: str = TURN, retry: bool = True, error: bool = True
) -> Talk:
    """Model calls of a turn after one another, the first of which is told to have failed."""
    for number, outcome in enumerate(outcomes, 1):
        if number > 1:
            talk.calls("again", call=number)
        talk.ends(number, outcome)
        if number == 1 and error:
            talk.failing(will_retry=retry, turn=turn)
    return talk


def given_up(**more: Any) -> Talk:
    """A turn that failed after one call, which broke off."""
    return failing(asked(), "disconnected", **more).turn_completed(status="failed")


CASES = [
    Case(
        rule="turn.usage-told",
        # The count of the first turn may come while the second runs already.
        good=over(asked(over(asked(), usage=15), 2).usage(), 2, usage=5).usage(),
        witnesses=(FIRST, SECOND),
        bad=over(asked(over(asked().usage(), usage=15), 2), 2, usage=5),
        found=(Found(SECOND, (8, 11), Level.SHOULD),),
        not_exercised=unclear(**TOLD),
    ),
    Case(
        rule="turn.plan-told",
        # The same plan once more is no change of it.
        good=over(asked().plan(LOOK).plan(LOOK, LEAP), plans=[[LOOK], [LOOK], [LOOK, LEAP]]),
        witnesses=(FIRST,),
        bad=over(
            asked(over(asked().plan(LOOK), plans=[[LOOK], [LEAP]]), 2).plan(LOOK, turn="turn_2"),
            2,
            plans=[[LEAP]],
        ),
        found=(Found(FIRST, (3, 6, 7)), Found(SECOND, (8, 12))),
        not_exercised=unclear(**TOLD),
    ),
    Case(
        rule="mcp.tool-called",
        good=over(asked().item(mcp_call("t-1", "failed", tool="tiny.add")), mcp=[ADD]),
        witnesses=("add of tiny in turn turn_1",),
        bad=over(asked().item(mcp_call("t-1", "completed", tool="other")), mcp=[ADD]),
        found=(Found("add of tiny in turn turn_1", (3, 8)),),
        not_exercised=unclear(mcp=[ADD]),
    ),
    Case(
        rule="turn.reroute-told",
        good=over(asked().rerouted("other"), answers="other"),
        witnesses=(FIRST,),
        bad=over(asked(over(asked().rerouted("third"), answers="other"), 2), 2, answers="other"),
        found=(Found(FIRST, (3, 6, 7)), Found(SECOND, (8, 11))),
        # The model that was asked answers, once by a longer name.
        not_exercised=over(
            asked(over(asked(unclear(**TOLD), 8), 8, answers="mock-model"), 9),
            9,
            answers="mock-model-2026-01-31",
        ),
    ),
    Case(
        rule="error.told-mid-turn",
        good=failing(asked(), "disconnected", "completed").turn_completed(),
        witnesses=(FIRST,),
        bad=failing(asked(), "failed server_error", "completed", error=False).turn_completed(),
        found=(Found(FIRST, (3, 6), Level.SHOULD),),
        # The turn failed with it; a status before anything was answered; a turn that was steered.
        not_exercised=steer(
            asked(
                asked(given_up(error=False), 2)
                .ends(2, "status 500")
                .calls("again", call=3)
                .ends(3)
                .turn_completed("turn_2"),
                4,
            ).ends(4, "disconnected"),
            "and more",
            expected="turn_4",
        )
        .answers({"turnId": "turn_4"})
        .calls("again", call=5)
        .ends(5)
        .turn_completed("turn_4"),
    ),
    Case(
        rule="error.retry-follows",
        good=failing(asked(), "status 500", "status 500").turn_completed(status="failed"),
        witnesses=(FIRST,),
        bad=failing(asked(), "disconnected").turn_completed(status="failed"),
        found=(Found(FIRST, (3, 6, 7), Level.SHOULD),),
        # It says that it will not; and one that was interrupted before it could.
        not_exercised=failing(
            asked(given_up(retry=False), 2), "disconnected", turn="turn_2"
        ).turn_completed("turn_2", status="interrupted"),
    ),
    Case(
        rule="turn.notice-known-turn",
        good=asked().plan(LOOK).rerouted("other"),
        witnesses=(FIRST,),
        bad=opened().plan(LOOK, turn="turn_9").plan(LOOK, turn="turn_9"),
        found=(Found("turn turn_9", (3,)),),
        # Announced later, named by items alone, on a thread of others.
        not_exercised=opened()
        .plan(LOOK)
        .turn_started()
        .rerouted("other", "turn_2")
        .item(command("c-1", "completed"), "turn_2")
        .plan(LOOK, turn="turn_9", thread="thr_9"),
    ),
]
