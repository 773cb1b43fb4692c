"""Chains of actions that users do in a row but random choice seldom draws."""

from harness.search.fuzz.sessions.actions import (
    ACTIONS,
    answer,
    answer_all,
    compact,
    interrupt,
    rollback,
    start_turn,
    steer,
    wait_for_it,
)
from harness.search.fuzz.sessions.chooser import Chooser
from harness.search.fuzz.sessions.novelty import DrawnSession
from harness.search.fuzz.sessions.plan import PlannedThread
from harness.search.fuzz.sessions.session import MAX_STEPS, Action, Offers, Session
from harness.search.fuzz.sessions.situations import ask, ask_again, begin
from harness.search.fuzz.sessions.turns import Json


def steer_then_end(session: Session, thread: PlannedThread) -> None:
    """Steer the running turn; then answer its request, or interrupt it and start another."""
    steer(session, thread)
    turn = thread.running_turn
    if turn is not None and turn.asks and not thread.doubtful and session.choose.chance(50):
        answer(session, thread)
        return
    if session.choose.chance(70):
        interrupt(session, thread)
        start_turn(session, thread)


def approve_then_interrupt(session: Session, thread: PlannedThread) -> None:
    """Answer a server request, and interrupt its turn before the work is done or right after."""
    answer(session, thread)
    turn = thread.running_turn
    if turn is None or thread.doubtful:
        return
    if session.choose.chance(60):
        # Once the model holds in its next reply, the accepted command has ended.
        answer_all(session, thread)
        wait_for_it(session, thread, turn)
    interrupt(session, thread)


def interrupt_then_ask(session: Session, thread: PlannedThread) -> None:
    """Interrupt the running turn, and repeat a command that was approved for the session."""
    interrupt(session, thread)
    session.plan.settle(thread)
    ask_again(session, thread)


def compact_then_rollback(session: Session, thread: PlannedThread) -> None:
    """Compact the history, and roll back its last turns."""
    compact(session, thread)
    rollback(session, thread)


def resume_twice(session: Session, thread: PlannedThread) -> None:
    """Resume a subscribed thread once or twice more, and unsubscribe from it once."""
    on, params = thread.home, {"threadId": thread.reference}
    for _ in range(session.choose.pick((1, 2))):
        session.plan.add_request("thread/resume", params=params, on=on)
    thread.lost_settings = True
    session.plan.add_request("thread/unsubscribe", params=params, on=on)
    thread.remove_follower(on)


def reconnect(session: Session, thread: PlannedThread) -> None:
    """Reconnect the second client, in most cases during a turn that it has followed."""
    plan = session.plan
    if "b" not in plan.connections:
        return
    if "b" not in thread.followers:
        plan.settle(thread)
        plan.add_request("thread/resume", params={"threadId": thread.reference}, on="b")
        thread.add_follower("b")
        thread.lost_settings = True
    if session.choose.chance(60):
        ask(session, thread)
    turn = thread.running_turn
    if turn is not None and turn.asks_now and not (turn.script.faulty or thread.doubtful):
        plan.wait_for_question(thread, turn)
    session.leave(thread)


def _is_running(thread: PlannedThread) -> bool:
    return thread.running_turn is not None


def _asks(thread: PlannedThread) -> bool:
    turn = thread.running_turn
    return turn is not None and turn.asks_now and not thread.doubtful


def _follows(thread: PlannedThread) -> bool:
    return thread.is_followed and not thread.is_archived


# A name lists the actions that its chain requires, separated by "+".
CHAINS = (
    Action("steer+interrupt", 8, steer_then_end, _is_running),
    Action("approvals+interrupt", 10, approve_then_interrupt, _asks),
    Action("interrupt+start_turn", 12, interrupt_then_ask, _is_running),
    Action("compact+rollback", 2, compact_then_rollback, lambda thread: bool(thread.turns)),
    Action("resume+unsubscribe", 2, resume_twice, _follows),
    Action("several+resume", 8, reconnect, _follows),
)


def draw_session(
    chooser: Chooser, offers: Offers | None = None, length: int = MAX_STEPS
) -> DrawnSession:
    """Return one drawn session; without `offers` the server is assumed to offer everything."""
    return Session(chooser, (*ACTIONS, *CHAINS), offers, begin, ask_again).draw(length)


def generate_document(
    chooser: Chooser, offers: Offers | None = None, length: int = MAX_STEPS
) -> Json:
    """Return one generated scenario document."""
    return draw_session(chooser, offers, length).document()
