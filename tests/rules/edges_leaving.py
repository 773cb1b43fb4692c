"""Edge cases of the end of a conversation: messages around the client's disconnection."""

from harness.judge.verdict import Level
from harness.trace.marks import ClientLeft
from tests.rules.approval_talk import Approvals, command_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import Talk

LEFT = ClientLeft("c1")


def cleaned_up_after_leaving() -> Talk:
    """The client leaves with a question open; the server resolves it and ends the turn."""
    talk = Approvals().running().started(command_item()).question().mark(LEFT)
    talk.resolved().completed(command_item(status="declined"))
    return talk.end_turn(status="interrupted")


def interrupted_after_leaving() -> Talk:
    """The client leaves in the middle of a turn that nobody interrupts."""
    return Talk().start_thread().start_turn().mark(LEFT).end_turn(status="interrupted")


def resolved_before_leaving() -> Talk:
    """The server resolves its question and runs the command; the client leaves later."""
    talk = Approvals().running().started(command_item()).question().resolved()
    talk.completed(command_item(status="completed"))
    return talk.end_turn().mark(LEFT)


def interrupted_before_leaving() -> Talk:
    """The server interrupts a turn by itself; the client leaves later."""
    talk = Talk().start_thread().start_turn().end_turn(status="interrupted")
    return talk.mark(LEFT)


LEGAL = [
    Legal("approval.order", "cleaned up after the client left", cleaned_up_after_leaving),
    Legal(
        "turn.interrupted-when-asked",
        "interrupted after the client left",
        interrupted_after_leaving,
    ),
]
ILLEGAL = [
    Illegal("approval.order", "resolved before the client left", resolved_before_leaving),
    Illegal(
        "turn.interrupted-when-asked",
        "interrupted before the client left",
        interrupted_before_leaving,
        Level.SHOULD,
    ),
]
