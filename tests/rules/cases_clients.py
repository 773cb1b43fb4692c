"""Cases of the rules on several clients of one thread."""

from harness.judge.verdict import Level
from tests.rules.approval_talk import command_item
from tests.rules.case import Case, Found, opened
from tests.rules.edges_adversary import Two, begins, completes, whole
from tests.rules.good_clients import asked_both, shared
from tests.rules.traces import Talk, agent_message

ITEM = "item call_1 of turn turn_1"
QUESTION = "request item/commandExecution/requestApproval id 0"


def told_both() -> Two:
    """Return a talk with two clients of a thread, both notified of a started turn: seqs 0 to 14."""
    return Two().opened().begun()


def ended_as(talk: Two, **statuses: str) -> Two:
    """Add turn/completed on each connection, with the status given for it."""
    for connection, status in statuses.items():
        talk.on(connection).turn_completed(status=status)
    return talk


def said(**texts: str) -> Two:
    """Return a talk with a message that is completed with another text on each connection."""
    talk = told_both().both(begins(agent_message("m", "")))
    for connection, words in texts.items():
        talk.on(connection).completed(agent_message("m", words))
    return ended_as(talk, c2="completed", c1="completed")


def decided(decision: str, status: str) -> Two:
    """Return a talk in which both clients get an approval request and the second one decides."""
    talk = Two().opened("untrusted").begun()
    asked_both(talk).on("c2").decides(decision)
    for connection in ("c2", "c1"):
        talk.on(connection).resolved()
    return talk.both(completes(command_item(status=status))).ended()


def resolved_for_one() -> Two:
    """Return a talk in which both get an approval request, but only the second its resolution."""
    talk = Two().opened("untrusted").begun()
    asked_both(talk).on("c2").decides("accept").resolved()
    return talk.both(completes(command_item(status="completed"))).ended()


def asked_alone() -> Two:
    """Return a talk in which only the first of two subscribers gets the approval request."""
    talk = Two().opened("untrusted").begun().both(begins(command_item()))
    talk.question().resolved()
    return talk.both(completes(command_item(status="declined"))).ended()


def told_one(*items: str) -> Two:
    """Return a talk with a turn of the first client; the second gets only these items of it."""
    talk = Two().opened().ask_turn().reply_turn().status("active").turn_started()
    talk.item(agent_message("m", "Yes.")).end_turn()
    for item in items:
        talk.on("c2").turn_started().item(agent_message(item, "Yes.")).end_turn()
    return talk


def left(*, told: bool, goes_on: bool = True) -> Two:
    """Return a talk in which the second client unsubscribes, and gets the next item if `told`."""
    talk = Two().opened().on("c2").leaves().on("c1")
    if goes_on:
        talk.ask_turn().reply_turn().status("active").turn_started()
        talk.item(agent_message("m", "Yes."))
    if told:
        talk.on("c2").started(agent_message("m", "")).on("c1")
    return talk.end_turn() if goes_on else talk


def alone() -> Talk:
    """Return a talk with one client and a turn."""
    return opened().plain_turn()


CASES: list[Case] = [
    Case(
        rule="clients.same-end",
        good=ended_as(told_both(), c2="completed", c1="completed"),
        witnesses=("turn turn_1",),
        bad=ended_as(told_both(), c2="interrupted", c1="completed"),
        found=(Found("turn turn_1", (15, 16)),),
        not_exercised=ended_as(told_both(), c1="completed"),
    ),
    Case(
        rule="clients.same-item",
        good=said(c2="Yes.", c1="Yes."),
        witnesses=("item turn_1-user of turn turn_1", "item m of turn turn_1"),
        bad=said(c2="Yes.", c1="No."),
        found=(Found("item m of turn turn_1", (17, 18)),),
        not_exercised=alone(),
    ),
    Case(
        rule="clients.answer-carried-out",
        good=decided("accept", "completed"),
        witnesses=(ITEM,),
        bad=decided("accept", "declined"),
        # The policy of the turn is known to the client that asked for it.
        found=(Found(ITEM, (17, 19, 22), Level.SHOULD), Found(ITEM, (17, 19, 23))),
        not_exercised=asked_alone(),
    ),
    Case(
        rule="clients.resolved-told",
        good=shared(),
        witnesses=(QUESTION,),
        bad=resolved_for_one(),
        found=(Found(QUESTION, (18, 19), Level.SHOULD),),
        not_exercised=asked_alone(),
    ),
    Case(
        rule="clients.subscriber-told",
        good=told_both().both(*whole(agent_message("m", "Yes."))).ended(),
        witnesses=("turn turn_1",),
        bad=told_one("another"),
        found=(Found("item m of turn turn_1", (10,), Level.SHOULD),),
        not_exercised=alone(),
    ),
    Case(
        rule="clients.left-untold",
        good=left(told=False),
        witnesses=("thread thr_1",),
        bad=left(told=True),
        found=(Found("thread thr_1", (6, 13), Level.SHOULD),),
        not_exercised=left(told=False, goes_on=False),
    ),
]
