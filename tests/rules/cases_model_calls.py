"""Cases of the rules on the content of model calls."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened
from tests.rules.traces import THREAD, TROUBLE, Talk, command

SCHEMA = {"type": "object"}
PROJECT = "/home/user/project"
FIRST, SECOND, THIRD = "turn turn_1", "turn turn_2", "turn turn_3"


def turn(talk: Talk, number: int = 1, call: dict[str, Any] | None = None, **more: Any) -> Talk:
    """turn/start, its reply, one model call, and the end: three messages."""
    name = f"turn_{number}"
    talk.ask_turn(text=f"say {number}", **more).reply_turn(name)
    return talk.calls(f"say {number}", **(call or {})).turn_completed(name)


def unclear(talk: Talk | None = None, **more: Any) -> Talk:
    """Turns that say nothing of these params: in vain, overlapping, cut off, after a resume."""
    wrong: dict[str, Any] = {"model": "x", "schema": True, "effort": "x", "summary": "x"}
    talk = opened() if talk is None else talk
    talk.ask_turn(text="no", **more).refuses().ask_turn(text="uncalled").reply_turn()
    talk.turn_completed().ask_turn(text="a", **more).reply_turn("turn_2")
    talk.ask_turn(text="b", **more).reply_turn("turn_3").calls(call=0, **wrong)
    talk.turn_completed("turn_2").calls(call=0, **wrong).turn_completed("turn_3")
    talk.ask_turn(text="c").reply_turn("turn_4").turn_completed("turn_4", status="interrupted")
    talk.ask_turn(text="late").reply_turn("turn_5").calls(call=0, **wrong)
    return talk.turn_completed("turn_5").asks("thread/resume", threadId=THREAD).refuses()


def unclear_or_cut() -> Talk:
    """Like `unclear`, after a turn that failed during a model call without the user's text."""
    talk = opened().ask_turn(text="then?").reply_turn("turn_0").calls("a summary, please")
    # The next one is judged by nobody: calls of a turn that was cut off may come late.
    return unclear(talk.turn_completed("turn_0", status="failed", error=TROUBLE))


def rejected(
    talk: Talk | None = None,
    number: int = 1,
    *,
    outcome: str = "status 400",
    complete: bool = False,
) -> Talk:
    """A turn whose call with an image is answered like this, after one that was if `complete`."""
    name = f"turn_{number}"
    talk = opened() if talk is None else talk
    talk.ask_turn(text=f"say {number}").reply_turn(name)
    if complete:
        talk.calls(f"say {number}", call=10, images=("b",)).ends(10)
    talk.calls(f"say {number}", images=("b",)).ends(outcome=outcome)
    return talk.turn_completed(name, status="failed", error=TROUBLE)


def listing(talk: Talk, number: int, folder: str, **more: Any) -> Talk:
    """A turn with one command in a folder: five messages."""
    name, item = f"turn_{number}", command(f"c-{number}", "completed", cwd=folder)
    talk.ask_turn(text=f"say {number}", **more).reply_turn(name).calls(f"say {number}")
    return talk.item(item, name).turn_completed(name)


CASES = [
    Case(
        rule="model.input-arrives",
        good=turn(opened()),
        witnesses=(FIRST,),
        bad=opened().ask_turn().reply_turn().calls("other", "words").turn_completed(),
        found=(Found(FIRST, (3, 5), Level.SHOULD),),
        # Cut off by what came before its own call.
        not_exercised=unclear_or_cut(),
    ),
    Case(
        rule="model.named",
        good=turn(turn(opened(), 1, {"model": "m"}, model="m"), 2, {"model": "m"}),
        witnesses=(FIRST, SECOND),
        bad=turn(turn(turn(opened(), 1, model="m"), 2), 3, {"model": "o"}),
        found=(
            Found(FIRST, (3, 5)),
            Found(SECOND, (3, 6, 8)),
            Found(THIRD, (3, 9, 11), Level.SHOULD),
        ),
        not_exercised=turn(unclear(model="m"), 6),
    ),
    Case(
        rule="model.schema-this-turn",
        good=turn(turn(opened(), 1, {"schema": True}, outputSchema=SCHEMA), 2),
        witnesses=(SECOND,),
        bad=turn(
            turn(
                turn(opened(), 1, {"schema": True}, outputSchema=SCHEMA),
                2,
                {"schema": True},
            ),
            3,
            outputSchema=SCHEMA,
        ),
        found=(Found(SECOND, (3, 6, 8)), Found(THIRD, (9, 11), Level.SHOULD)),
        not_exercised=turn(opened(), 1, {"schema": True}),
    ),
    Case(
        rule="model.rejected-left-out",
        good=turn(rejected(), 2),
        witnesses=(SECOND,),
        bad=turn(rejected(), 2, {"call": 2, "images": ("a", "b")}),
        found=(Found(SECOND, (3, 6, 8), Level.INFO),),
        # Another failure, and an image that an answered call has held too.
        not_exercised=turn(
            rejected(rejected(outcome="status 500"), 2, complete=True), 3, {"images": ("b",)}
        ),
    ),
    Case(
        rule="model.effort-passed",
        good=turn(opened(), 1, {"effort": "low"}, effort="low"),
        witnesses=(FIRST,),
        bad=turn(opened(), 1, {"effort": "high"}, effort="low"),
        found=(Found(FIRST, (3, 5), Level.INFO),),
        not_exercised=turn(unclear(effort="low"), 6),
    ),
    Case(
        rule="model.summary-passed",
        # The model's own word for verbose is another.
        good=turn(
            turn(opened(), 1, {"summary": "concise"}, summary="concise"),
            2,
            {"summary": "detailed"},
            summary="verbose",
        ),
        witnesses=(FIRST, SECOND),
        bad=turn(opened(), 1, summary="concise"),
        found=(Found(FIRST, (3, 5), Level.INFO),),
        not_exercised=turn(unclear(summary="concise"), 6),
    ),
    Case(
        rule="turn.cwd-applies",
        good=listing(listing(opened(), 1, "/w/a/", cwd="/w/a"), 2, "/private/w/a"),
        witnesses=("item c-1 of turn turn_1", "item c-2 of turn turn_2"),
        bad=listing(listing(opened(), 1, PROJECT, cwd="/w/a"), 2, PROJECT),
        found=(
            Found("item c-1 of turn turn_1", (3, 5)),
            Found("item c-2 of turn turn_2", (3, 10)),
        ),
        # No override, one in vain, a relative one.
        not_exercised=listing(
            listing(listing(opened(), 1, PROJECT).ask_turn(cwd="/w/a").refuses(), 2, PROJECT),
            3,
            "/w/a",
            cwd="here",
        ),
    ),
    Case(
        rule="thread.cwd-used",
        good=listing(opened(), 1, PROJECT),
        witnesses=("item c-1 of turn turn_1",),
        bad=listing(opened(), 1, "/somewhere/else"),
        found=(Found("item c-1 of turn turn_1", (1, 5)),),
        # Moved by its turn, and by the one before.
        not_exercised=listing(listing(opened(), 1, "/w/a", cwd="/w/a"), 2, "/w/b"),
    ),
]
