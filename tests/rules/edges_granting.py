"""Edge cases of the rules on rejected turn/steer and turn/interrupt."""

from typing import Any

from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, TURN, Talk, command, turn_object, user_message

MORE = [{"type": "text", "text": "more of it"}]


def asked() -> Talk:
    """A turn that was answered, and is not announced yet."""
    return Talk().start_thread().ask_turn().reply_turn()


def announced(talk: Talk) -> Talk:
    talk.status("active").turn_started().item(user_message("turn_1-user", "hello"))
    return talk.calls("hello")


def steer(talk: Talk, *more: dict[str, Any], said: Any = MORE) -> Talk:
    added = [*said, *more]
    return talk.asks("turn/steer", threadId=THREAD, expectedTurnId=TURN, input=added)


def goes_on(talk: Talk) -> Talk:
    """The turn calls the model again, and comes to its own end."""
    return talk.item(command("c-1", "completed")).calls("hello", call=2).message("m-1", "a")


def not_yet_active() -> Talk:
    return goes_on(announced(steer(asked()).refuses("no active turn"))).end_turn()


def not_yet_told() -> Talk:
    """The thread is active already when the input is refused; its turn is announced later."""
    talk = steer(asked().status("active")).refuses("no active turn")
    talk.turn_started().item(user_message("turn_1-user", "hello")).calls("hello")
    return goes_on(talk).end_turn()


def what_it_cannot_take(*more: dict[str, Any]) -> Talk:
    return goes_on(steer(announced(asked()), *more).refuses("not supported")).end_turn()


def too_long() -> Talk:
    said = [{"type": "text", "text": "more " * 100_000}]
    return goes_on(steer(announced(asked()), said=said).refuses("too long")).end_turn()


def active() -> Talk:
    return goes_on(steer(announced(asked())).refuses("no active turn")).end_turn()


def active_while_it_works() -> Talk:
    talk = announced(asked()).started(command("c-0"))
    steer(talk).refuses("busy").completed(command("c-0", "completed"))
    return goes_on(talk).end_turn()


def interrupted(talk: Talk) -> Talk:
    return goes_on(talk.interrupt().refuses("busy")).end_turn()


def interrupted_at_once() -> Talk:
    """The turn is in progress by its reply, and is interrupted: nothing more is required of it."""
    return goes_on(announced(asked().interrupt().refuses("no turn"))).end_turn()


def ends_before_it_calls() -> Talk:
    """Refused, and then over: it may have ended already when it was asked."""
    talk = announced(asked()).interrupt().refuses("no turn")
    return talk.end_turn()


def second_of_two() -> Talk:
    talk = announced(asked()).interrupt().interrupt().answers({}, to=3).refuses("twice", to=4)
    return talk.tells(
        "turn/completed", threadId=THREAD, turn=turn_object(status="interrupted")
    ).status("idle")


STEER, INTERRUPT = "steer.granted", "interrupt.granted"
LEGAL: list[Legal] = [
    Legal(STEER, "before the turn is announced", not_yet_active, frozenset({STEER})),
    Legal(STEER, "active and not announced", not_yet_told, frozenset({STEER})),
    Legal(
        STEER,
        "an image",
        lambda: what_it_cannot_take({"type": "image", "url": "data:image/png;base64,AAAA"}),
    ),
    Legal(
        STEER,
        "a skill that is not there",
        lambda: what_it_cannot_take({"type": "skill", "name": "x", "path": "/x/SKILL.md"}),
    ),
    Legal(STEER, "more than it takes", too_long),
    Legal(INTERRUPT, "over already", ends_before_it_calls),
    Legal(INTERRUPT, "the second of two", second_of_two),
]
ILLEGAL: list[Illegal] = [
    Illegal(STEER, "of the active turn", active),
    Illegal(STEER, "while a command runs", active_while_it_works),
    Illegal(INTERRUPT, "of the active turn", lambda: interrupted(announced(asked()))),
    Illegal(INTERRUPT, "before the turn is announced", interrupted_at_once),
]
