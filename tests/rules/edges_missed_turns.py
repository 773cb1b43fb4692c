"""Edge cases of rules on complete notification: turns that a client missed while away."""

from tests.rules.approval_talk import Approvals, command_item
from tests.rules.edge import Illegal, Legal
from tests.rules.edges_away import archived, away, leaves, returns
from tests.rules.traces import (
    THREAD,
    Talk,
    settings,
    stored_plain_turn,
    thread_object,
)

NAMES, STREAMED = "approval.names-item", "turn.streamed"
PREVIEW = "thread.preview-first-message"

# What says the same of a turn that was not announced.
UNTOLD = frozenset({"approval.order", "status.active-while-turn", "status.change-notified"})


def decided(talk: Approvals) -> Approvals:
    """A question about a command, which is accepted and runs; then the turn ends."""
    talk.question().decides("accept").resolved()
    talk.completed(command_item(status="completed")).end_turn()
    return talk


def taken_back(talk: Approvals) -> Approvals:
    """The thread comes back from the archive; this client does not take it up again."""
    archived(talk).asks("thread/unarchive", threadId=THREAD).answers({"thread": thread_object()})
    return talk.tells("thread/unarchived", threadId=THREAD)


def asked_about_a_turn_of_others() -> Talk:
    """The client was away when another one began the turn in which it is asked now."""
    return decided(away(Approvals().policy()))


def asked_after_an_archive() -> Talk:
    """An archived thread has no subscribers; a client that starts a turn in it subscribes later."""
    talk = taken_back(Approvals().policy()).on("c2")
    talk.asks("thread/resume", threadId=THREAD).answers({"thread": thread_object(), **settings()})
    talk.on("c1").ask_turn().reply_turn().on("c2").status("active").turn_started().started(
        command_item()
    )
    decided(returns(talk.on("c1")))
    talk.on("c2").completed(command_item(status="completed"))
    return talk.end_turn()


def asked_before_it_is_announced() -> Talk:
    """A question in a turn of which nothing was told, to the client that began it."""
    talk = Approvals().policy().ask_turn().reply_turn().question().decides("accept").resolved()
    return talk.turn_started().item(command_item(status="completed")).end_turn()


def asked_about_an_unknown_turn() -> Talk:
    """The client follows the thread all the time, and no turn of that id was ever begun."""
    talk = Approvals().running().question(turn="turn_9").decides("decline").resolved()
    return talk.message("m", "Done").end_turn()


def asked_about_a_turn_that_was_begun_meanwhile() -> Talk:
    """The thread was in the archive, and another client began the turn before this one is back."""
    return decided(returns(taken_back(Approvals().policy())))


def previewed(talk: Talk, preview: str) -> Talk:
    """A turn of this client, and what the thread is shown with after it."""
    talk.plain_turn("turn_2").asks("thread/read", threadId=THREAD)
    return talk.answers({"thread": thread_object(preview=preview, turns=[])})


def said_by_another_before() -> Talk:
    """Another client began the first turn, while this one was away."""
    talk = leaves(Talk().start_thread(), threadId=THREAD).asks("thread/resume", threadId=THREAD)
    stored = thread_object(preview="first of all", turns=[stored_plain_turn("turn_1")])
    return previewed(talk.answers({"thread": stored, **settings()}), "first of all")


LEGAL = [
    Legal(NAMES, "a-turn-of-others-while-away", asked_about_a_turn_of_others),
    Legal(NAMES, "a-turn-after-an-archive", asked_about_a_turn_that_was_begun_meanwhile),
    Legal(STREAMED, "not-followed-after-an-archive", asked_after_an_archive),
    Legal(PREVIEW, "said-by-another-while-away", said_by_another_before),
]
ILLEGAL = [
    Illegal(STREAMED, "asked before it is announced", asked_before_it_is_announced, also=UNTOLD),
    Illegal(NAMES, "an unknown turn", asked_about_an_unknown_turn),
]
