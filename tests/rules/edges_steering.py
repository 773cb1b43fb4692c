"""Edge cases of turn/steer in threads that were forked, resumed, rolled back or compacted."""

from harness.judge.verdict import Level
from tests.rules.edge import Illegal, Legal
from tests.rules.history_talk import Past, past, stored
from tests.rules.traces import THREAD, TURN, user_message

KEPT, UNHEARD, ARRIVES = "steer.input-kept", "steer.refused-unheard", "steer.input-arrives"
MORE = "and more of it"


def disturbed() -> Past:
    """Return a talk with a thread that was forked, rolled back and resumed."""
    talk = past(TURN, "turn_2").forks(*stored(TURN, "turn_2")).announced()
    talk.rolls_back(*stored(TURN))
    return talk.resumes(*stored(TURN))


def steered(talk: Past, *, expected: str = "turn_3", resumed: bool = False) -> Past:
    """Add a turn up to a turn/steer."""
    talk.start_turn("turn_3", text="do it").calls("do it")
    if resumed:
        talk.resumes(*stored(TURN))
    said = [{"type": "text", "text": MORE}]
    return talk.asks("turn/steer", threadId=THREAD, expectedTurnId=expected, input=said)


def ended(talk: Past, *, shown: bool = False, heard: bool = False) -> Past:
    """Add the end of the turn, perhaps with the input in a userMessage and a call."""
    if shown:
        talk.item(user_message("u-3", MORE), "turn_3")
    if heard:
        talk.calls("do it", MORE, call=2)
    return talk.message("m-3", "Done.", turn="turn_3").end_turn("turn_3")


def granted(talk: Past, *, resumed: bool = False) -> Past:
    """Add a turn with an accepted turn/steer."""
    return steered(talk, resumed=resumed).answers({"turnId": "turn_3"})


def rejected(talk: Past) -> Past:
    """Add a turn with a rejected turn/steer."""
    return steered(talk, expected=TURN).refuses()


LEGAL: list[Legal] = [
    Legal(KEPT, "after-a-rollback", lambda: ended(granted(disturbed()), shown=True, heard=True)),
    Legal(
        KEPT,
        "thread-resumed-in-the-turn",
        lambda: ended(granted(disturbed(), resumed=True)),
    ),
    Legal(UNHEARD, "after-a-rollback", lambda: ended(rejected(disturbed()))),
    Legal(UNHEARD, "twice", lambda: ended(rejected(disturbed())).plain_turn("turn_4")),
]

ILLEGAL: list[Illegal] = [
    Illegal(
        KEPT,
        "lost-after-a-rollback",
        lambda: ended(granted(disturbed())),
        also=frozenset({ARRIVES}),
    ),
    Illegal(
        KEPT,
        "lost-before-a-rollback",
        lambda: ended(granted(past())).rolls_back(*stored(TURN)),
        also=frozenset({ARRIVES}),
    ),
    Illegal(
        ARRIVES,
        "shown-alone-after-a-rollback",
        lambda: ended(granted(disturbed()), shown=True),
        Level.SHOULD,
    ),
    Illegal(
        ARRIVES,
        "shown-alone-before-a-rollback",
        lambda: ended(granted(past()), shown=True).rolls_back(*stored(TURN)),
        Level.SHOULD,
    ),
    Illegal(UNHEARD, "heard-after-a-rollback", lambda: ended(rejected(disturbed()), heard=True)),
    Illegal(UNHEARD, "shown-after-a-rollback", lambda: ended(rejected(disturbed()), shown=True)),
]
