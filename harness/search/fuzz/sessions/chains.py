"""Steps that users do one right after another, and that chance alone seldom puts in a row."""

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
from harness.search.fuzz.sessions.novelty import Drawn
from harness.search.fuzz.sessions.plan import PlannedThread
from harness.search.fuzz.sessions.session import MAX_STEPS, Action, Offers, Session
from harness.search.fuzz.sessions.situations import ask, ask_again, begin
from harness.search.fuzz.sessions.turns import Json


def steered(session: Session, thread: PlannedThread) -> None:
    """Input for a turn that runs; then an answer to its question, or its end and a turn."""
    steer(session, thread)
    turn = thread.running
    if turn is not None and turn.asks and not thread.doubtful and session.choose.chance(50):
        answer(session, thread)
        return
    if session.choose.chance(70):
        interrupt(session, thread)
        start_turn(session, thread)


def cut_short(session: Session, thread: PlannedThread) -> None:
    """An answer to a question, and the end of its turn: before its work is done, or right after."""
    answer(session, thread)
    turn = thread.running
    if turn is None or thread.doubtful:
        return
    if session.choose.chance(60):
        # Once the model holds in its next reply, what was accepted is over.
        answer_all(session, thread)
        wait_for_it(session, thread, turn)
    interrupt(session, thread)


def begun_again(session: Session, thread: PlannedThread) -> None:
    """The end of the turn that runs, and what was accepted for the session once more."""
    interrupt(session, thread)
    session.plan.settle(thread)
    ask_again(session, thread)


def summed_up(session: Session, thread: PlannedThread) -> None:
    """The history is summed up, and its last turns are dropped."""
    compact(session, thread)
    rollback(session, thread)


def followed_twice(session: Session, thread: PlannedThread) -> None:
    """A client takes up a thread that it follows, once more or twice, and leaves it once."""
    on, params = thread.home, {"threadId": thread.reference}
    for _ in range(session.choose.one((1, 2))):
        session.plan.request("thread/resume", params=params, on=on)
    thread.changed = True
    session.plan.request("thread/unsubscribe", params=params, on=on)
    thread.left_on(on)


def reconnected(session: Session, thread: PlannedThread) -> None:
    """The second client is gone and back, mostly in a turn that it followed from its beginning."""
    plan = session.plan
    if "b" not in plan.connections:
        return
    if "b" not in thread.followers:
        plan.settle(thread)
        plan.request("thread/resume", params={"threadId": thread.reference}, on="b")
        thread.followed_on("b")
        thread.changed = True
    if session.choose.chance(60):
        ask(session, thread)
    turn = thread.running
    if turn is not None and turn.asks_now and not (turn.script.faulty or thread.doubtful):
        plan.meet(thread, turn)
    session.leave(thread)


def _runs(thread: PlannedThread) -> bool:
    return thread.running is not None


def _asks(thread: PlannedThread) -> bool:
    turn = thread.running
    return turn is not None and turn.asks_now and not thread.doubtful


def _follows(thread: PlannedThread) -> bool:
    return thread.loaded and not thread.archived


# The names of the actions that a chain takes for granted, with a "+" in between.
CHAINS = (
    Action("steer+interrupt", 8, steered, _runs),
    Action("approvals+interrupt", 10, cut_short, _asks),
    Action("interrupt+start_turn", 12, begun_again, _runs),
    Action("compact+rollback", 2, summed_up, lambda thread: bool(thread.turns)),
    Action("resume+unsubscribe", 2, followed_twice, _follows),
    Action("several+resume", 8, reconnected, _follows),
)


def drawn(chooser: Chooser, offers: Offers | None = None, length: int = MAX_STEPS) -> Drawn:
    """One generated session."""
    return Session(chooser, (*ACTIONS, *CHAINS), offers, begin, ask_again).draw(length)


def generated(chooser: Chooser, offers: Offers | None = None, length: int = MAX_STEPS) -> Json:
    """One generated scenario document."""
    return drawn(chooser, offers, length).document()
