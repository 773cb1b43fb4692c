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
    """Two clients of a thread are told of a turn but its end: seqs 0 to 14."""
    return Two().opened().begun()


def ended_as(talk: Two, **statuses: str) -> Two:
    """The end of the turn, for each client with a status of its own."""
    for connection, status in statuses.items():
        talk.on(connection).turn_completed(status=status)
    return talk


def said(**texts: str) -> Two:
    """A message that begins for both, and is completed for each with a text of its own."""
    talk = told_both().both(begins(agent_message("m", "")))
    for connection, words in texts.items():
        talk.on(connection).completed(agent_message("m", words))
    return ended_as(talk, c2="completed", c1="completed")


def decided(decision: str, status: str) -> Two:
    """Both are asked, the second one answers, both are told what became of the command."""
    talk = Two().opened("untrusted").begun()
    asked_both(talk).on("c2").decides(decision)
    for connection in ("c2", "c1"):
        talk.on(connection).resolved()
    return talk.both(completes(command_item(status=status))).ended()


def resolved_for_one() -> Two:
    """Both are asked, the second one answers and is told alone that this is resolved."""
    talk = Two().opened("untrusted").begun()
    asked_both(talk).on("c2").decides("accept").resolved()
    return talk.both(completes(command_item(status="completed"))).ended()


def asked_alone() -> Two:
    """The first client alone is asked, and it answers; the second one opened the thread too."""
    talk = Two().opened("untrusted").begun().both(begins(command_item()))
    talk.question().resolved()
    return talk.both(completes(command_item(status="declined"))).ended()


def told_one(*items: str) -> Two:
    """The first client is told of a turn of its own, the second one of these items of it only."""
    talk = Two().opened().ask_turn().reply_turn().status("active").turn_started()
    talk.item(agent_message("m", "Yes.")).end_turn()
    for item in items:
        talk.on("c2").turn_started().item(agent_message(item, "Yes.")).end_turn()
    return talk


def left(*, told: bool, goes_on: bool = True) -> Two:
    """The second client leaves; in the next turn it may be told of an item all the same."""
    talk = Two().opened().on("c2").leaves().on("c1")
    if goes_on:
        talk.ask_turn().reply_turn().status("active").turn_started()
        talk.item(agent_message("m", "Yes."))
    if told:
        talk.on("c2").started(agent_message("m", "")).on("c1")
    return talk.end_turn() if goes_on else talk


def alone() -> Talk:
    """One client."""
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
