"""Edge cases of the rules on a thread that is resumed while one of its turns runs."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.cases_attaching import BOTH, FIRST, cut_in, goes_on
from tests.rules.edge import Illegal, Legal
from tests.rules.history_talk import Past
from tests.rules.traces import THREAD, agent_message, command, turn_object

TWICE, KNOWN = "attach.no-duplicate", "attach.known-items"
CONTINUES, GAP = "attach.text-continues", "attach.no-gap"
ACTIVE = {"type": "active", "activeFlags": []}


def shown(*turns: dict[str, Any]) -> Past:
    """A thread is resumed by another client while a message is under way."""
    talk = Past().start_thread().start_turn().message("m-1", "One.")
    talk.started(agent_message("m-2", "")).delta("m-2", "Tw").on("c2")
    return talk.resumes(*turns, status=ACTIVE)


def first_left_out() -> Past:
    """The answer shows the open message, and not the one that ended before it."""
    talk = shown(turn_object(items=[FIRST, agent_message("m-2", "Tw")]))
    return goes_on(talk, *BOTH)


def begun_anew() -> Past:
    """The answer shows nothing of the open message, which is begun anew for who came in."""
    talk = cut_in("One.").started(agent_message("m-2", "")).delta("m-2", "Tw")
    return goes_on(talk, *BOTH)


def told_while_it_was_asked(text: str) -> Past:
    """A delta of the open message comes between the request and its answer, on one connection."""
    talk = Past().start_thread().start_turn().message("m-1", "One.")
    talk.started(agent_message("m-2", "")).delta("m-2", "T")
    talk.asks("thread/resume", threadId=THREAD).delta("m-2", "w")
    items = [FIRST, agent_message("m-1", "One."), agent_message("m-2", text)]
    return goes_on(talk.shows(turn_object(items=items), status=ACTIVE), "c1")


def finished_meanwhile() -> Past:
    """A message ends while the request is under way, is shown whole, and its end is told later."""
    talk = Past().start_thread().start_turn().message("m-1", "One.")
    talk.started(agent_message("m-2", "")).on("c2").asks("thread/resume", threadId=THREAD)
    talk.on("c1").delta("m-2", "Two.").completed(agent_message("m-2", "Two.")).on("c2")
    items = [FIRST, agent_message("m-1", "One."), agent_message("m-2", "Two.")]
    talk.shows(turn_object(items=items), status=ACTIVE)
    talk.completed(agent_message("m-2", "Two.")).end_turn()
    return talk.on("c1").end_turn()


def with_a_command(*items: dict[str, Any], again: bool) -> Past:
    """A command has ended when another client comes, which is shown these items."""
    done = command("c-1", "completed")
    talk = Past().start_thread().start_turn().item(done).on("c2")
    talk.resumes(turn_object(items=[FIRST, *items]), status=ACTIVE)
    if again:
        talk.completed(done)
    for connection in BOTH:
        talk.on(connection).message("m-1", "Done.").end_turn()
    return talk


def renamed() -> Past:
    """The answer has other ids of items than were told."""
    items = [{**FIRST, "id": "item-1"}, agent_message("item-2", "One.")]
    talk = shown(turn_object(items=items)).on("c1").delta("m-2", "o.")
    for connection in BOTH:
        talk.on(connection).completed(agent_message("m-2", "Two.")).end_turn()
    return talk


def back_again(*items: dict[str, Any], shown: bool = True) -> Past:
    """The second client unsubscribes during the turn, and resumes with the first input and `items`.

    Unless the turn is not `shown` at all. The second message was "Tw" at first; while the client
    was unsubscribed, "o" came, and a command began and ended.
    """
    talk = cut_in("One.", "Tw").asks("thread/unsubscribe", threadId=THREAD)
    talk.answers({"status": "unsubscribed"})
    talk.on("c1").delta("m-2", "o").item(command("c-1", "completed")).on("c2")
    turns = [turn_object(items=[FIRST, *items])] if shown else []
    talk.resumes(*turns, status=ACTIVE)
    for connection in BOTH:
        talk.on(connection).delta("m-2", ".").completed(agent_message("m-2", "Two.")).end_turn()
    return talk


def came_and_left() -> Past:
    """Another client comes into a turn and leaves; the first one is told what comes."""
    talk = Past().start_thread().start_turn().on("c2")
    talk.resumes(turn_object(items=[FIRST]), status=ACTIVE)
    talk.asks("thread/unsubscribe", threadId=THREAD).answers({"status": "unsubscribed"})
    return talk.on("c1")


def begun_while_away(*items: dict[str, Any]) -> Past:
    """A message begins while who came in is away; it is back before the message ends."""
    talk = came_and_left().started(agent_message("m-2", "")).delta("m-2", "Two").on("c2")
    talk.resumes(turn_object(items=[FIRST, *items]), status=ACTIVE)
    for connection in BOTH:
        talk.on(connection).delta("m-2", ".").completed(agent_message("m-2", "Two.")).end_turn()
    return talk


def ended_while_away() -> Past:
    """A message ends while who came in is away, and is not among what it is shown then."""
    talk = (
        came_and_left()
        .message("m-1", "One.")
        .on("c2")
        .resumes(turn_object(items=[FIRST]), status=ACTIVE)
    )
    for connection in BOTH:
        talk.on(connection).end_turn()
    return talk


ONE, TWO, DONE = (
    agent_message("m-1", "One."),
    agent_message("m-2", "Two"),
    command("c-1", "completed"),
)


LEGAL: list[Legal] = [
    Legal(CONTINUES, "back after it had left", lambda: back_again(ONE, TWO, DONE)),
    Legal(KNOWN, "known from the first answer", lambda: back_again(ONE, DONE)),
    Legal(KNOWN, "begun while it was away", lambda: begun_while_away(TWO)),
    Legal(GAP, "ended while it was away", lambda: back_again(ONE, TWO, DONE)),
    Legal(CONTINUES, "the turn not shown again", lambda: back_again(shown=False)),
    Legal(GAP, "the turn not shown again", lambda: back_again(shown=False)),
    Legal(GAP, "the running turn left out", lambda: goes_on(shown(), *BOTH)),
    Legal(
        GAP,
        "the running turn without items",
        lambda: goes_on(shown(turn_object()), *BOTH),
        frozenset({KNOWN}),
    ),
    Legal(GAP, "items under other ids", renamed),
    Legal(GAP, "commands are not in the history", lambda: with_a_command(again=False)),
    Legal(KNOWN, "open items left out", lambda: goes_on(cut_in("One."), *BOTH), frozenset({KNOWN})),
    Legal(KNOWN, "open items begun anew", begun_anew),
    Legal(CONTINUES, "a piece in what is shown", lambda: told_while_it_was_asked("Tw")),
    Legal(CONTINUES, "a piece after what is shown", lambda: told_while_it_was_asked("T")),
    Legal(TWICE, "the same client again", lambda: goes_on(cut_in("One.", "Tw", own=True), "c1")),
    Legal(TWICE, "finished while it was asked", finished_meanwhile),
]
ILLEGAL: list[Illegal] = [
    Illegal(
        CONTINUES, "shown too little", lambda: goes_on(cut_in("One.", "T"), *BOTH), Level.SHOULD
    ),
    Illegal(KNOWN, "open items left out", lambda: goes_on(cut_in("One."), *BOTH), Level.SHOULD),
    Illegal(GAP, "the first message left out", first_left_out, Level.SHOULD),
    Illegal(
        CONTINUES,
        "shown too little when it is back",
        lambda: back_again(ONE, agent_message("m-2", "Tw"), DONE),
        Level.SHOULD,
    ),
    Illegal(
        KNOWN,
        "begun while it was away and not shown",
        begun_while_away,
        Level.SHOULD,
    ),
    Illegal(
        GAP,
        "a message ended while it was away",
        ended_while_away,
        Level.SHOULD,
    ),
    Illegal(
        TWICE,
        "a command told again",
        lambda: with_a_command(command("c-1", "completed"), again=True),
        Level.SHOULD,
    ),
    Illegal(
        TWICE,
        "a message begun again",
        lambda: goes_on(cut_in("One.", "Tw").message("m-1", "One."), *BOTH),
        Level.SHOULD,
    ),
]
