"""Situations in which the actions of a session are tried.

Most defects show with open approval requests on two threads at once, which random choice seldom
reaches.
"""

from harness.search.fuzz.sessions.actions import (
    answer_all,
    archive,
    compact,
    resume,
    take_turn,
    unarchive,
    unsubscribe,
    wait_for_it,
)
from harness.search.fuzz.sessions.plan import PlannedThread, PlannedTurn
from harness.search.fuzz.sessions.session import Session

# Situations of a thread before an action, each with its weight.
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
# The same for a thread without approvals, whose turns stay open at a gate.
_SITUATIONS_WITHOUT_QUESTIONS = [("hold", 8), ("pipe", 6), *_SITUATIONS[5:]]
# Situation -> the part of a turn that it needs, if it is not of the same name.
_TOOL = {"pipe": "run", "approved": "run"}


def begin(session: Session) -> None:
    """Bring one thread into a situation, and mostly another one, if there is one."""
    plan, choose = session.plan, session.choose
    if session.has_room and (len(plan.threads) == 1 or choose.chance(20)):
        session.start_thread()
    number = 2 if len(plan.threads) > 1 and choose.chance(75) else 1
    first = choose.below(len(plan.threads))
    for offset in range(number):
        thread = plan.threads[(first + offset) % len(plan.threads)]
        session.choose_actor(thread)
        _bring(
            session,
            thread,
            choose.pick_weighted(_SITUATIONS if thread.asks else _SITUATIONS_WITHOUT_QUESTIONS),
        )


def ask(session: Session, thread: PlannedThread) -> None:
    """Start a turn that needs approval, if the thread is ready for one."""
    tools = [tool for tool in ("run", "patch") if tool not in session.lacks]
    if tools and thread.asks and thread.ready and not thread.plain:
        _turn(session, thread, session.choose.pick(tools))


def ask_again(session: Session, thread: PlannedThread) -> None:
    """Repeat a command approved for the session, to see whether the approval still holds."""
    plan = session.plan
    allowed = [command for command in thread.commands if command in thread.allowed_commands]
    if allowed and thread.ready and not thread.plain and "run" not in session.lacks:
        take_turn(
            session,
            thread,
            session.writer.repeat_turn(plan.next_nonce(), session.choose.pick(allowed)),
        )
        plan.settle(thread)


def _bring(session: Session, thread: PlannedThread, situation: str) -> None:
    """Bring a thread into a situation, as far as possible."""
    plan, choose = session.plan, session.choose
    plan.settle(thread)
    if choose.chance(80):
        ask_again(session, thread)
    if thread.is_archived:
        unarchive(session, thread)
    elif not thread.is_followed:
        resume(session, thread)
    if situation in ("run", "patch", "approved", "pipe", "hold"):
        lacks = thread.plain or _TOOL.get(situation, situation) in session.lacks
        turn = _turn(session, thread, "" if lacks else situation)
        if situation == "approved":
            answer_all(session, thread)
        if choose.chance(85):
            wait_for_it(session, thread, turn)
        return
    if not thread.turns and choose.chance(80):
        take_turn(session, thread, session.writer.plain_turn(plan.next_nonce()))
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
        resume(session, thread)
    elif situation == "back from the archive":
        unarchive(session, thread)


def _turn(session: Session, thread: PlannedThread, part: str) -> PlannedTurn:
    """Start a turn that begins with this part, "" for a turn of one message; return it."""
    writer, nonce = session.writer, session.plan.next_nonce()
    if not part:
        return take_turn(session, thread, writer.plain_turn(nonce))
    script = writer.turn_with(nonce, part, policy=thread.policy, before=thread.commands)
    return take_turn(session, thread, script)
