"""Cases of the rules on the causes of failed turns, and on threads in systemError."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import ModelListens
from tests.rules.case import Case, Found, opened
from tests.rules.cases_news import asked
from tests.rules.traces import TROUBLE, Talk, command

FIRST, SECOND, THIRD, THREAD = "turn turn_1", "turn turn_2", "turn turn_3", "thread thr_1"
LOST = {"message": "lost", "agentErrorInfo": {"httpConnectionFailed": {"status": 1}}}


def broken(info: Any = None, details: Any = None, message: str = "it failed") -> dict[str, Any]:
    """Return the error of a failed turn."""
    return {"message": message, "agentErrorInfo": info, "additionalDetails": details}


def fails(talk: Talk, number: int, outcome: str, error: dict[str, Any], **told: Any) -> Talk:
    """Add a turn whose model call ends with `outcome` and that fails with `error`: 4 messages."""
    asked(talk, number).ends(number, outcome, **told)
    return talk.turn_completed(f"turn_{number}", status="failed", error=error)


def unreached(talk: Talk, turn: str, error: dict[str, Any]) -> Talk:
    """Add a turn that fails while the model is unreachable; four messages."""
    talk.mark(ModelListens(listening=False))
    talk.ask_turn(text="hello").reply_turn(turn).turn_started(turn)
    # The model is reachable again before the client receives the end.
    talk.mark(ModelListens(listening=True))
    return talk.turn_completed(turn, status="failed", error=error)


def judged_by_word(*infos: Any) -> Talk:
    """Return a talk with three failed turns: status 403, a stream cut off, context exceeded."""
    talk = opened()
    fails(talk, 1, "status 403", broken(infos[0]))
    fails(talk, 2, "disconnected", broken(infos[1]))
    return fails(talk, 3, "status 400", broken(infos[2]), code="context_length_exceeded")


def unjudged() -> Talk:
    """No word for the cause, none or an own one in the error, no failure; a model that could not be
    reached later, before, or only at first.
    """
    talk = fails(opened(), 1, "status 404", broken("Other"))
    fails(talk, 2, "status 500", broken())
    asked(talk, 3).ends(3, "status 500").turn_completed("turn_3")
    fails(talk, 5, "status 503", broken("serverOverloaded"), code="server_is_overloaded")
    talk.ask_turn(text="hello").reply_turn("turn_4").mark(ModelListens(listening=False))
    talk.turn_completed("turn_4", status="failed", error=broken("Other"))
    talk.mark(ModelListens(listening=True)).ask_turn(text="hello").reply_turn("turn_6")
    talk.turn_completed("turn_6", status="failed", error=broken("Other"))
    talk.mark(ModelListens(listening=False)).ask_turn(text="hello").reply_turn("turn_7")
    talk.mark(ModelListens(listening=True)).calls("hello", call=7)
    return talk.turn_completed("turn_7", status="failed", error=broken("Other"))


def broken_threads() -> Talk:
    """Return a talk with two threads in systemError, after a failed turn and after an error."""
    talk = opened().start_turn().turn_completed(status="failed", error=TROUBLE)
    talk.status("systemError").start_thread("thr_2").start_turn("turn_2", "thr_2")
    talk.failing(will_retry=True, turn="turn_2", thread="thr_2")
    return talk.turn_completed("turn_2", "thr_2").read_status("systemError", "thr_2")


def broken_for_nothing() -> Talk:
    """Return a talk with two threads in systemError, after a completed turn and after none."""
    talk = opened().start_turn().turn_completed().status("systemError")
    return talk.start_thread("thr_2").read_status("systemError", "thr_2")


def troubled() -> Talk:
    """Return a talk with systemError after a failed command, and of another client's thread."""
    talk = opened().start_turn().item(command("c-1", "failed")).turn_completed()
    return talk.status("systemError").status("systemError", "thr_2")


CASES = [
    Case(
        rule="turn-error.info-fits",
        good=unreached(
            judged_by_word(
                "Unauthorized",
                {"responseStreamDisconnected": {"httpStatusCode": None}},
                "contextWindowExceeded",
            ),
            "turn_4",
            LOST,
        ),
        witnesses=(FIRST, SECOND, THIRD, "turn turn_4"),
        bad=unreached(
            judged_by_word("other", "Other", "BadRequest"), "turn_4", broken("InternalServerError")
        ),
        found=(
            Found(FIRST, (3, 6), Level.INFO),
            Found(SECOND, (7, 10), Level.INFO),
            Found(THIRD, (11, 14), Level.INFO),
            Found("turn turn_4", (15, 18), Level.INFO),
        ),
        not_exercised=unjudged(),
    ),
    Case(
        rule="turn-error.tells-cause",
        good=fails(
            fails(opened(), 1, "status 400", broken(details="x: no room"), said="no room"),
            2,
            "failed odd",
            broken(message="no room"),
            said="no room",
        ),
        witnesses=(FIRST, SECOND),
        bad=fails(opened(), 1, "status 400", broken(details="x"), said="no room"),
        found=(Found(FIRST, (3, 6), Level.INFO),),
        not_exercised=fails(opened(), 1, "disconnected", TROUBLE),
    ),
    Case(
        rule="status.system-error-met",
        good=broken_threads(),
        witnesses=(THREAD, "thread thr_2"),
        bad=broken_for_nothing(),
        found=(
            Found(THREAD, (10,), Level.INFO),
            Found("thread thr_2", (15,), Level.INFO),
        ),
        not_exercised=troubled(),
    ),
]
