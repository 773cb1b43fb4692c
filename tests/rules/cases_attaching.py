"""Cases of the rules on a thread that is resumed while one of its turns runs."""

from harness.judge.verdict import Level
from tests.rules.case import Case, Found
from tests.rules.history_talk import Past, past, stored
from tests.rules.traces import TURN, agent_message, turn_object, user_message

SUBJECT = "turn turn_1"
FIRST = user_message(f"{TURN}-user", "hello")


def cut_in(*shown: str, own: bool = False) -> Past:
    """Return a talk with a thread that is resumed after one and a half messages of a turn.

    The messages are seqs 9 to 11 and 12 to 13. Another client, or its own, resumes the thread; the
    result (seq 15) shows the user's message and these texts of the agent.
    """
    talk = Past().start_thread().start_turn().message("m-1", "One.")
    talk.started(agent_message("m-2", "")).delta("m-2", "Tw")
    said = [agent_message(f"m-{at}", words) for at, words in enumerate(shown, start=1)]
    active = {"type": "active", "activeFlags": []}
    talk.on("c1" if own else "c2")
    return talk.resumes(turn_object(items=[FIRST, *said]), status=active)


def goes_on(talk: Past, *connections: str, final: str = "Two.") -> Past:
    """Add the rest of the second message and the turn's end, on these connections (16 to 18)."""
    for connection in connections:
        talk.on(connection).delta("m-2", "o.").completed(agent_message("m-2", final)).end_turn()
    return talk


BOTH = ("c2", "c1")

CASES = [
    Case(
        rule="attach.no-duplicate",
        good=goes_on(cut_in("One.", "Tw"), *BOTH),
        witnesses=(SUBJECT,),
        bad=goes_on(cut_in("One.", "Tw").completed(agent_message("m-1", "One.")), *BOTH),
        found=(Found("item m-1 of turn turn_1", (11, 15, 16), Level.SHOULD),),
        not_exercised=past().resumes(*stored()).plain_turn("turn_2"),
    ),
    Case(
        rule="attach.known-items",
        good=goes_on(cut_in("One.", "Tw"), *BOTH),
        witnesses=("item m-2 of turn turn_1",),
        bad=goes_on(cut_in("One."), *BOTH),
        found=(Found("item m-2 of turn turn_1", (15, 16), Level.SHOULD),),
        not_exercised=past().resumes(*stored()).plain_turn("turn_2"),
    ),
    Case(
        rule="attach.text-continues",
        good=goes_on(cut_in("One.", "Tw"), *BOTH),
        witnesses=("item m-2 of turn turn_1",),
        bad=goes_on(cut_in("One.", "T"), *BOTH),
        found=(Found("item m-2 of turn turn_1", (15, 17), Level.SHOULD),),
        not_exercised=goes_on(cut_in("One."), *BOTH),
    ),
    Case(
        rule="attach.no-gap",
        good=goes_on(cut_in("One.", "Tw"), *BOTH),
        witnesses=(SUBJECT,),
        bad=goes_on(cut_in(), *BOTH),
        found=(Found(SUBJECT, (11, 15, 19), Level.SHOULD),),
        not_exercised=goes_on(cut_in("One.", "Tw", own=True), "c1"),
    ),
]
