"""Races as the rules judge them: ways that the text leaves to a server, and ways that it does not.

Each legal conversation is one that some server could have: whoever finds another that is blamed
adds it here. What is wrong is said by the one rule that is there to see it.
"""

from collections.abc import Callable

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.loading import load_book
from tests.rules.approval_talk import Approvals, command_item
from tests.rules.case import opened, running
from tests.rules.traces import (
    THREAD,
    TROUBLE,
    TURN,
    Talk,
    agent_message,
    settings,
    thread_object,
    turn_object,
    user_message,
)

BOOK, RULES = load_book(), all_rules()
COMPACTION = {"type": "contextCompaction", "id": "c-1"}
SECOND = user_message("u-2", "second")


def wrong(talk: Talk) -> set[str]:
    rows = judge(BOOK, talk.trace(), rules=RULES.values())
    bad = [row for row in rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    return {row.rule for row in bad if row.level is not Level.INFO}


def steer(talk: Talk, text: str = "more please", turn: str = TURN) -> Talk:
    said = [{"type": "text", "text": text}]
    return talk.asks("turn/steer", threadId=THREAD, expectedTurnId=turn, input=said)


def granted(talk: Talk, text: str = "more please") -> Talk:
    return steer(talk, text).answers({"turnId": TURN})


def compact(talk: Talk) -> Talk:
    return talk.asks("thread/compact/start", threadId=THREAD).answers({})


def leave(talk: Talk) -> Talk:
    left = {"status": "unsubscribed"}
    return talk.asks("thread/unsubscribe", threadId=THREAD).answers(left)


def compacting(talk: Talk) -> Talk:
    talk.status("active").turn_started("turn_2").started(COMPACTION, "turn_2")
    return talk.completed(COMPACTION, "turn_2").end_turn("turn_2")


def second_turn(talk: Talk) -> Talk:
    talk.status("active").turn_started("turn_2").item(SECOND, "turn_2")
    return talk.message("m-2", "b", turn="turn_2").end_turn("turn_2")


ACTIVE = {"type": "active", "activeFlags": []}


def joined(*clients: str) -> Talk:
    """A running turn that other clients come to by thread/resume."""
    talk = running()
    said = [user_message(f"{TURN}-user", "hello")]
    shown = thread_object(preview="hello", status=ACTIVE, turns=[turn_object(items=said)])
    for client in clients:
        talk.on(client).asks("thread/resume", threadId=THREAD)
        talk.answers({"thread": shown, **settings()})
    return talk


HELLO = [user_message(f"{TURN}-user", "hello")]
WHOLE, PIECE = [agent_message("m-1", "One.")], agent_message("m-2", "Tw")


def cut_off() -> Talk:
    """A message, and a second one that an interrupt cuts off."""
    talk = running().message("m-1", "One.").started(agent_message("m-2", "")).delta("m-2", "Tw")
    return talk.interrupt().answers({}).completed(PIECE).end_turn(status="interrupted")


def interrupted_by_another() -> Talk:
    talk = joined("c2").interrupt().answers({}).end_turn(status="interrupted")
    return talk.on("c1").end_turn(status="interrupted")


def resumed_in_a_stream() -> Talk:
    talk = running().started(agent_message("m-1", "")).delta("m-1", "Hel")
    said = [user_message(f"{TURN}-user", "hello"), agent_message("m-1", "Hel")]
    shown = thread_object(preview="hello", status=ACTIVE, turns=[turn_object(items=said)])
    talk.on("c2").asks("thread/resume", threadId=THREAD).answers({"thread": shown, **settings()})
    for client in ("c1", "c2"):
        talk.on(client).delta("m-1", "lo").completed(agent_message("m-1", "Hello")).end_turn()
    return talk


LEGAL: dict[str, Callable[[], Talk]] = {
    "a second interrupt is refused": lambda: (
        running().interrupt().answers({}).interrupt().refuses().end_turn(status="interrupted")
    ),
    "an interrupt crosses a failure and is answered after it": lambda: (
        running().interrupt().failing(will_retry=False).end_turn(status="failed", error=TROUBLE)
    ).answers({}),
    "an interrupt crosses the end and is refused": lambda: (
        running().interrupt().end_turn().refuses()
    ),
    "an interrupt of no turn ends the one that runs": lambda: (
        running().interrupt("turn_9").answers({}).end_turn(status="interrupted")
    ),
    "another client interrupts": interrupted_by_another,
    "another client comes in the middle of a stream": resumed_in_a_stream,
    "a second turn waits for the first": lambda: second_turn(
        running().ask_turn(text="second").reply_turn("turn_2").message("m-1", "a").end_turn()
    ),
    "a second turn is answered when it begins": lambda: second_turn(
        running().ask_turn(text="second").message("m-1", "a").end_turn().reply_turn("turn_2")
    ),
    "a second turn takes the place of the first": lambda: second_turn(
        running().ask_turn(text="second").end_turn(status="interrupted").reply_turn("turn_2")
    ),
    "a second turn/start joins the first turn": lambda: (
        running().ask_turn(text="second").reply_turn().item(SECOND).message("m", "b").end_turn()
    ),
    "a turn is asked for before the interrupted one has ended": lambda: second_turn(
        running()
        .interrupt()
        .answers({})
        .ask_turn(text="second")
        .end_turn(status="interrupted")
        .reply_turn("turn_2")
    ),
    "a turn is interrupted while another model compacts": lambda: (
        (opened().ask_turn(model="big").reply_turn().status("active").turn_started())
        .calls("summarise", model="small")
        .interrupt()
        .answers({})
        .ends(outcome="dropped")
        .end_turn(status="interrupted")
    ),
    "a turn with a schema fails while it is compacted": lambda: (
        (opened().ask_turn(outputSchema={"type": "object"}).reply_turn().status("active"))
        .turn_started()
        .calls("summarise")
        .ends(outcome="status 500")
        .failing(will_retry=False)
        .end_turn(status="failed", error=TROUBLE)
    ),
    "a message that an interrupt cut off is not kept": lambda: cut_off().read(
        turn_object(status="interrupted", items=[*HELLO, *WHOLE])
    ),
    "a message that an interrupt cut off is kept": lambda: cut_off().read(
        turn_object(status="interrupted", items=[*HELLO, *WHOLE, PIECE])
    ),
    "a retry is broken off by an interrupt": lambda: (
        running().failing(will_retry=True).interrupt().answers({}).end_turn(status="interrupted")
    ),
    "a retry was announced in vain": lambda: (
        running().failing(will_retry=True).end_turn(status="failed", error=TROUBLE)
    ),
    "a steer crosses the end": lambda: steer(running()).end_turn().refuses(),
    "a steer of a turn that is being interrupted": lambda: (
        steer(running().interrupt().answers({})).refuses().end_turn(status="interrupted")
    ),
    "a steer is shown before it is answered": lambda: (
        (steer(running().calls("hello")).item(user_message("s-1", "more please")))
        .answers({"turnId": TURN})
        .calls("hello", "more please", call=2)
        .end_turn()
    ),
    "two steers are shown as one message": lambda: (
        granted(granted(running().calls("hello")), "and another")
        .item(user_message("s-1", "more please\nand another"))
        .calls("hello", "more please\nand another", call=2)
        .end_turn()
    ),
    "a steer is heard when the next turn is asked for, while its own runs": lambda: second_turn(
        granted(running().calls("hello"))
        .ask_turn(text="second")
        .calls("hello", "more please", call=2)
        .end_turn()
        .reply_turn("turn_2")
    ),
    "a steer is heard by a call for which the script has no answer": lambda: (
        granted(running().calls("hello", thread="t"))
        .calls("hello", call=2, thread="t", step=1)
        .calls("hello", "more please", call=3, thread="t", step=-1)
        .end_turn()
    ),
    "a refused steer is said again as a turn": lambda: (
        steer(running().end_turn())
        .refuses()
        .start_turn("turn_2", text="more please")
        .calls("hello", "more please")
        .end_turn("turn_2")
    ),
    "compaction interrupts the turn": lambda: compacting(
        compact(running()).end_turn(status="interrupted")
    ),
    "compaction waits for the turn": lambda: compacting(compact(running()).end_turn()),
    "compaction happens in the turn": lambda: (
        compact(running()).started(COMPACTION).completed(COMPACTION).end_turn()
    ),
    "two compactions are made as one": lambda: compacting(compact(compact(opened().plain_turn()))),
    "an interrupted turn leaves nothing to compact": lambda: (
        compact(running().interrupt().answers({}).end_turn(status="interrupted"))
        .status("active")
        .turn_started("turn_2")
        .end_turn("turn_2")
    ),
    "a compaction takes no input and cannot be interrupted": lambda: (
        steer(compact(opened().plain_turn()).status("active").turn_started("turn_2"), turn="turn_2")
        .refuses()
        .interrupt("turn_2")
        .refuses()
        .started(COMPACTION, "turn_2")
        .completed(COMPACTION, "turn_2")
        .end_turn("turn_2")
    ),
    "who leaves is told nothing more": lambda: leave(
        running().started(agent_message("m-1", "")).delta("m-1", "Hel")
    ),
    "who leaves is told that the thread is closed": lambda: (
        leave(running()).status("notLoaded").tells("thread/closed", threadId=THREAD)
    ),
    "who leaves while it is asked": lambda: leave(
        Approvals().running().started(command_item()).question()
    ),
    "archiving interrupts the turn": lambda: (
        (running().asks("thread/archive", threadId=THREAD).end_turn(status="interrupted"))
        .answers({})
        .tells("thread/archived", threadId=THREAD)
    ),
    "a rollback is refused while a turn runs": lambda: (
        running().asks("thread/rollback", threadId=THREAD, numTurns=1).refuses().end_turn()
    ),
}


@pytest.mark.parametrize("way", LEGAL)
def test_choices_that_the_text_leaves_open_are_not_failed(way: str) -> None:
    assert wrong(LEGAL[way]()) == set()


def late_interrupt() -> Talk:
    talk = running().interrupt().end_turn().answers({}).start_turn("turn_2", text="next")
    return talk.end_turn("turn_2", status="interrupted")


def heard_in_the_next_turn() -> Talk:
    talk = granted(running().calls("hello")).message("m-1", "a").end_turn()
    talk.start_turn("turn_2", text="next").calls("hello", "more please", "next", call=2)
    return talk.end_turn("turn_2")


def asked_after_cancel() -> Talk:
    talk = Approvals().running().approved("declined", decision="cancel")
    talk.started(command_item("call_2")).question("call_2").resolved()
    return talk.completed(command_item("call_2", "declined")).end_turn(status="interrupted")


def back_and_never_told() -> Talk:
    shown = thread_object(preview="hello", status=ACTIVE, turns=[turn_object()])
    talk = leave(running()).asks("thread/resume", threadId=THREAD)
    return talk.answers({"thread": shown, **settings()})


ILLEGAL = {
    "an interrupt that came too late ends the next turn": (
        late_interrupt,
        {"turn.interrupted-when-asked"},
    ),
    "what was added is heard in the next turn": (heard_in_the_next_turn, {"steer.input-arrives"}),
    "another command is asked about after cancel": (
        asked_after_cancel,
        {"approval.cancel-ends-work"},
    ),
    "a turn that was cut off is read with what it never said": (
        lambda: cut_off().read(turn_object(status="interrupted", items=[*HELLO, PIECE, *WHOLE])),
        {"read.stored-equals-live"},
    ),
    "an interrupted turn is read without its input": (
        lambda: cut_off().read(turn_object(status="interrupted", items=WHOLE)),
        {"read.stored-equals-live"},
    ),
    "a completed turn asks another model alone": (
        lambda: (
            (opened().ask_turn(model="big").reply_turn().status("active").turn_started())
            .calls("hello", model="small")
            .ends()
            .message("m-1", "a")
            .end_turn()
        ),
        {"model.named"},
    ),
    "who came back is not told of the end": (back_and_never_told, {"turn.completes"}),
    "the second of two compactions is not made": (
        lambda: compact(compacting(compact(opened().plain_turn())).plain_turn("turn_3")),
        {"compact.item-emitted", "compact.told"},
    ),
}


@pytest.mark.parametrize("way", ILLEGAL)
def test_results_that_no_reading_allows_are_failed(way: str) -> None:
    talk, rules = ILLEGAL[way]
    assert wrong(talk()) == rules
