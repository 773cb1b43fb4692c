"""Situations in which the actions of a session are tried, one after the other.

Chance alone seldom brings two threads to an open question at the same time, and what goes wrong
mostly goes wrong there.
"""

from harness.search.fuzz.sessions.actions import (
    answer_all,
    archive,
    compact,
    resume_one,
    take_turn,
    unarchive,
    unsubscribe,
    wait_for_it,
)
from harness.search.fuzz.sessions.plan import PlannedThread, PlannedTurn
from harness.search.fuzz.sessions.session import Session

# Each with its weight: where a thread is before something is done to it.
_SITUATIONS = [
    ("run", 7),
    ("patch", 7),
    ("approved", 8),
    ("hold", 4),
    ("pipe", 2),
    ("idle", 3),
    ("summed up", 2),
    ("left", 1),
    ("taken up again", 2),
    ("archived", 1),
    ("back from the archive", 1),
]
# Of a thread that asks about nothing: the same, where its turns can be met while they run.
_UNASKED = [("hold", 8), ("pipe", 6), *_SITUATIONS[5:]]
# The part of a turn that a server has to offer for it.
_TOOL = {"pipe": "run", "approved": "run"}


def begin(session: Session) -> None:
    """Bring one thread into a situation, and often another one into the same or another."""
    plan, choose = session.plan, session.choose
    if session.room and (len(plan.threads) == 1 or choose.chance(20)):
        session.start_thread()
    number = 2 if len(plan.threads) > 1 and choose.chance(75) else 1
    first = choose.below(len(plan.threads))
    for offset in range(number):
        thread = plan.threads[(first + offset) % len(plan.threads)]
        session.acts(thread)
        _bring(session, thread, choose.weighted(_SITUATIONS if thread.asks else _UNASKED))


def ask(session: Session, thread: PlannedThread) -> None:
    """A turn that asks about a command or a patch, where none asks yet and the thread takes one."""
    tools = [tool for tool in ("run", "patch") if tool not in session.lacks]
    if tools and thread.asks and thread.ready and not thread.plain:
        _turn(session, thread, session.choose.one(tools))


def ask_again(session: Session, thread: PlannedThread) -> None:
    """Run once more what was accepted for the session: whether that still holds shows only so."""
    plan = session.plan
    allowed = [command for command in thread.commands if command in thread.allowed]
    if allowed and thread.ready and not thread.plain and "run" not in session.lacks:
        take_turn(session, thread, session.writer.again(plan.nonce(), session.choose.one(allowed)))
        plan.settle(thread)


def _bring(session: Session, thread: PlannedThread, situation: str) -> None:
    """Bring a thread into a situation, as far as it can be."""
    plan, choose = session.plan, session.choose
    plan.settle(thread)
    if choose.chance(80):
        ask_again(session, thread)
    if thread.archived:
        unarchive(session, thread)
    elif not thread.loaded:
        resume_one(session, thread)
    if situation in ("run", "patch", "approved", "pipe", "hold"):
        lacks = thread.plain or _TOOL.get(situation, situation) in session.lacks
        turn = _turn(session, thread, "" if lacks else situation)
        if situation == "approved":
            answer_all(session, thread)
        if choose.chance(85):
            wait_for_it(session, thread, turn)
        return
    if not thread.turns and choose.chance(80):
        take_turn(session, thread, session.writer.plain(plan.nonce()))
        plan.settle(thread)
    doing = {
        "summed up": ("compact", compact),
        "left": ("unsubscribe", unsubscribe),
        "taken up again": ("unsubscribe", unsubscribe),
        "archived": ("archive", archive),
        "back from the archive": ("archive", archive),
    }
    name, do = doing.get(situation, ("", None))
    if do is None or name in session.lacks:
        return
    do(session, thread)
    if situation == "taken up again":
        resume_one(session, thread)
    elif situation == "back from the archive":
        unarchive(session, thread)


def _turn(session: Session, thread: PlannedThread, part: str) -> PlannedTurn:
    """A turn that begins with this part, "" for one that only says something."""
    writer, nonce = session.writer, session.plan.nonce()
    if not part:
        return take_turn(session, thread, writer.plain(nonce))
    script = writer.wanted(nonce, part, policy=thread.policy, before=thread.commands)
    return take_turn(session, thread, script)
