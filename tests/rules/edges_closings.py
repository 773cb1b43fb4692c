"""Edge cases of threads that are unsubscribed, archived and resumed, several times."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import opened
from tests.rules.cases_loading import leaves, loaded, names
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, Talk, settings, thread_object

CLOSED, KEPT, WORDS = "loading.closed-told", "loading.kept-for-others", "unsubscribe.words"
LISTED, NAMED, ARCHIVED = "loaded.lists-loaded", "name.told", "archive.told"
UNARCHIVED = "unarchive.told"


def resumes(talk: Talk, **shown: Any) -> Talk:
    """Add thread/resume and its result."""
    talk.asks("thread/resume", threadId=THREAD)
    return talk.answers({"thread": thread_object(turns=[], **shown), **settings()})


def reopened(talk: Talk | None = None, *, closed: bool = True, listed: bool = True) -> Talk:
    """The thread is left, perhaps listed as unloaded, and resumed."""
    talk = leaves(talk or opened(), closed=closed)
    return resumes(loaded(talk) if listed else talk)


def says_closed(talk: Talk) -> Talk:
    """Add thread/closed."""
    return talk.tells("thread/closed", threadId=THREAD)


def archived(talk: Talk, *, told: bool = True, restored: bool = True) -> Talk:
    """The thread is archived and unarchived."""
    talk.asks("thread/archive", threadId=THREAD).answers({})
    if told:
        talk.tells("thread/archived", threadId=THREAD)
    talk.asks("thread/unarchive", threadId=THREAD).answers({"thread": thread_object()})
    return talk.tells("thread/unarchived", threadId=THREAD) if restored else talk


def joined(talk: Talk) -> Talk:
    """A second client resumes the thread."""
    return resumes(talk.on("c2"))


def resumed_in_a_turn(*, closed_first: bool = False, status: str = "completed") -> Talk:
    """The only client leaves and resumes while a turn runs; the thread is closed, perhaps late."""
    talk = resumes(leaves(opened().start_turn()))
    if closed_first:
        return says_closed(talk).end_turn(status=status)
    return says_closed(talk.end_turn(status=status))


LEGAL: list[Legal] = [
    Legal(CLOSED, "told-each-time", lambda: leaves(reopened(reopened()), closed=True)),
    Legal(
        CLOSED,
        "first-one-is-late",
        lambda: says_closed(leaves(says_closed(reopened(closed=False)))),
    ),
    Legal(
        CLOSED, "both-at-the-end", lambda: says_closed(leaves(reopened(closed=False), closed=True))
    ),
    Legal(
        CLOSED,
        "reopened-before-it-was-unloaded",
        lambda: leaves(reopened(closed=False, listed=False), closed=True),
    ),
    Legal(CLOSED, "archived-since", lambda: leaves(archived(reopened()))),
    Legal(KEPT, "late-after-a-resume", lambda: says_closed(reopened(closed=False))),
    Legal(KEPT, "late-in-a-turn", lambda: resumed_in_a_turn(closed_first=True)),
    Legal(KEPT, "late-after-a-lost-turn", lambda: resumed_in_a_turn(status="interrupted")),
    Legal(
        WORDS,
        "notLoaded-after-a-late-closing",
        lambda: leaves(says_closed(reopened(closed=False)), "notLoaded"),
    ),
    Legal(LISTED, "listed-again-after-a-resume", lambda: loaded(reopened(), THREAD)),
    Legal(
        LISTED,
        "gone-with-a-late-closing",
        lambda: loaded(says_closed(reopened(closed=False, listed=False))),
    ),
    Legal(
        NAMED,
        "both-told-at-the-end",
        lambda: names(names(opened(), "one", told=False), "two").tells(
            "thread/name/updated", threadId=THREAD, threadName="two"
        ),
    ),
    Legal(
        ARCHIVED,
        "first-one-is-late",
        lambda: archived(archived(opened(), told=False)).tells("thread/archived", threadId=THREAD),
    ),
    Legal(ARCHIVED, "told-each-time", lambda: archived(archived(opened()))),
]

ILLEGAL: list[Illegal] = [
    Illegal(CLOSED, "first-of-two-untold", lambda: leaves(reopened(closed=False), closed=True)),
    Illegal(CLOSED, "second-untold", lambda: leaves(reopened())),
    Illegal(
        CLOSED,
        "second-of-three-untold",
        lambda: leaves(reopened(reopened(), closed=False), closed=True),
    ),
    Illegal(CLOSED, "after-an-archive-and-a-resume", lambda: leaves(resumes(archived(opened())))),
    Illegal(KEPT, "closed-after-a-resume", lambda: says_closed(reopened())),
    Illegal(KEPT, "closed-after-a-second-resume", lambda: says_closed(reopened(reopened()))),
    Illegal(KEPT, "closed-at-the-end-of-a-turn", resumed_in_a_turn),
    Illegal(WORDS, "followed-again", lambda: leaves(reopened(), "notLoaded"), Level.SHOULD),
    Illegal(LISTED, "gone-after-a-resume", lambda: loaded(reopened())),
    Illegal(
        LISTED,
        "listed-after-the-second-closing",
        lambda: loaded(leaves(reopened(), closed=True), THREAD),
    ),
    Illegal(
        LISTED, "gone-after-an-archive-and-a-resume", lambda: loaded(resumes(archived(opened())))
    ),
    Illegal(NAMED, "first-of-two-untold", lambda: names(names(opened(), "one", told=False), "two")),
    Illegal(ARCHIVED, "first-of-two-untold", lambda: archived(archived(opened(), told=False))),
    Illegal(
        UNARCHIVED, "first-of-two-untold", lambda: archived(archived(opened(), restored=False))
    ),
    Illegal(UNARCHIVED, "second-untold", lambda: archived(archived(opened()), restored=False)),
]
