"""Edge cases of turns that the server's end cut off: which content must be stored."""

from harness.judge.verdict import Level
from harness.trace.marks import Closed
from tests.rules.case import opened
from tests.rules.cases_durability import AGENT, USER, cut, ended, go_on, resume, shown
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, Talk, agent_message, command, settings, thread_object

KEPT, OVER, GOES_ON = "durable.messages-kept", "durable.turn-over", "durable.goes-on"


def with_another_id() -> Talk:
    """The turn has a new id in the next process."""
    return cut().read(shown(USER, AGENT, turn="turn_9"))


def without_items() -> Talk:
    """The message was only begun, and so was the command."""
    talk = opened().start_turn().started(agent_message("m-1", "")).started(command("k-1"))
    return ended(talk).read(shown(USER))


def ephemeral() -> Talk:
    """An ephemeral thread is not on disk."""
    talk = opened()
    talk.asks("thread/start").answers(
        {"thread": thread_object("thr_2", ephemeral=True, path=None), **settings()}
    )
    talk.start_turn("turn_2", "thr_2").message("m-1", "Hello", turn="turn_2", thread="thr_2")
    return ended(talk).asks("thread/read", threadId="thr_2", includeTurns=True).refuses()


def gone_on_with() -> Talk:
    """The next process goes on with the turn by itself."""
    talk = resume(cut(), shown(USER, AGENT, status="inProgress"), status="active")
    return go_on(talk).refuses("a turn is active").message("m-2", "And on.").end_turn()


def left_and_not_ended() -> Talk:
    """The client left, and came back; its server is the same."""
    talk = opened().start_turn().message("m-1", "Hello").mark(Closed("c1")).on("c2")
    return talk.read(shown(USER, AGENT, status="inProgress"))


def rolled_back() -> Talk:
    """The turn was dropped by request."""
    talk = resume(cut(), shown(USER, AGENT))
    talk.asks("thread/rollback", threadId=THREAD, numTurns=1)
    return talk.answers({"thread": thread_object(turns=[])}).read()


def lost_by_an_orderly_end() -> Talk:
    """The server was asked to end, and kept nothing of what it had told."""
    return ended(opened().start_turn().message("m-1", "Hello")).read()


def lost_by_a_kill() -> Talk:
    """The server writes a turn when it is over, and was killed before."""
    return ended(opened().start_turn().message("m-1", "Hello"), killed=True).read()


def told_in_another_order() -> Talk:
    """The first message of the turn comes last."""
    talk = opened().start_turn().message("m-1", "One").message("m-2", "Two")
    other = [agent_message("m-2", "Two"), agent_message("m-1", "One")]
    return ended(talk).read(shown(USER, *other))


def shown_in_progress_when_resumed() -> Talk:
    """A thread that is idle, with a turn that runs."""
    return resume(cut(), shown(USER, AGENT, status="inProgress"))


def running_after_an_orderly_end() -> Talk:
    """The server was asked to end, and its turn runs on."""
    return ended(opened().start_turn()).read(shown(USER, status="inProgress"))


LEGAL = [
    Legal(KEPT, "with-another-id", with_another_id),
    Legal(KEPT, "what-was-only-begun", without_items),
    Legal(KEPT, "of-an-ephemeral-thread", ephemeral),
    Legal(KEPT, "dropped-by-a-rollback", rolled_back),
    Legal(KEPT, "lost-by-a-kill", lost_by_a_kill, frozenset({KEPT})),
    Legal(OVER, "gone-on-with", gone_on_with),
    Legal(OVER, "of-a-server-that-was-only-left", left_and_not_ended),
]
ILLEGAL = [
    Illegal(KEPT, "lost-by-an-orderly-end", lost_by_an_orderly_end, Level.SHOULD),
    Illegal(KEPT, "in-another-order", told_in_another_order, Level.SHOULD),
    Illegal(OVER, "after-an-orderly-end", running_after_an_orderly_end, Level.SHOULD),
    Illegal(
        OVER,
        "when-it-is-resumed",
        shown_in_progress_when_resumed,
        Level.SHOULD,
        frozenset({"status.read-matches-turns"}),
    ),
]
