"""Edge cases of archiving: who is notified and when, and optional notifications."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import Closed, StepBegins
from harness.trace.trace import End
from tests.rules.cases_archiving import archives, put_away, unarchives, used
from tests.rules.edge import Illegal, Legal
from tests.rules.edges_adversary import Two
from tests.rules.traces import THREAD, Talk, thread_object

ARCHIVED, UNARCHIVED = "archive.told", "unarchive.told"


def told_before_the_answer() -> Talk:
    """The notification comes first, each time."""
    talk = used().asks("thread/archive", threadId=THREAD).tells("thread/archived", threadId=THREAD)
    talk.answers({}).asks("thread/unarchive", threadId=THREAD).tells("thread/unarchived")
    return talk.answers({"thread": thread_object(preview="hello")})


def told_late() -> Talk:
    """Other answers come in between."""
    talk = archives(used(), told=False).asks("thread/loaded/list")
    return talk.answers({"data": [], "nextCursor": None}).tells("thread/archived", threadId=THREAD)


def told_to(*connections: str) -> Talk:
    """The second client archives what the first one follows."""
    talk: Any = Two().start_thread().plain_turn().on("c2")
    archives(talk, told=False)
    for connection in connections:
        talk.on(connection).tells("thread/archived", threadId=THREAD)
    return talk


def archived_twice() -> Talk:
    """A second archiving of an archived thread is answered, and needs no notification."""
    return archives(put_away(), told=False)


def restored_though_not_archived() -> Talk:
    """An unarchiving of a thread that is not archived is answered, and needs no notification."""
    return unarchives(used(), told=False)


def archived_where_nobody_follows() -> Talk:
    """After a restart a server that tells followers alone has nobody to tell."""
    talk: Any = Two().start_thread().plain_turn().mark(StepBegins("restart", 5)).mark(Closed("c1"))
    return archives(talk.on("c2"), told=False)


def sent_together() -> Talk:
    """Archive and unarchive are sent at once, and answered in the other order."""
    talk = used().asks("thread/archive", threadId=THREAD).asks("thread/unarchive", threadId=THREAD)
    talk.refuses("not in the archive", to=4).answers({}, to=3)
    return talk.tells("thread/archived", threadId=THREAD)


def both_sent_at_once_and_neither_told() -> Talk:
    """Two requests are sent at once, so their order is unknown."""
    talk = used().asks("thread/archive", threadId=THREAD).asks("thread/archive", threadId=THREAD)
    return talk.answers({}, to=3).answers({}, to=4).tells("thread/archived", threadId=THREAD)


def lost_after_the_first_time() -> Talk:
    """Archived and restored, and archived again in silence."""
    return archives(unarchives(put_away()), told=False)


def restored_in_silence_after_a_refusal() -> Talk:
    """A refused request changes nothing."""
    talk = put_away().asks("thread/archive", threadId=THREAD).refuses("it is in the archive")
    return unarchives(talk, told=False)


def another_one_is_told() -> Talk:
    """The other thread is told to be restored."""
    return unarchives(put_away(), told=False).tells("thread/unarchived", threadId="thr_2")


LEGAL: list[Legal] = [
    Legal(ARCHIVED, "told-before-the-answer", told_before_the_answer),
    Legal(ARCHIVED, "told-late", told_late),
    Legal(ARCHIVED, "told-to-the-caller-alone", lambda: told_to("c2")),
    Legal(ARCHIVED, "told-to-the-follower-alone", lambda: told_to("c1")),
    Legal(ARCHIVED, "told-to-all", lambda: told_to("c1", "c2")),
    Legal(ARCHIVED, "archived-twice", archived_twice),
    Legal(ARCHIVED, "sent-together", sent_together),
    Legal(ARCHIVED, "two-at-once", both_sent_at_once_and_neither_told),
    Legal(ARCHIVED, "server-ends", lambda: archives(used(), told=False), end=End.EXITED),
    Legal(ARCHIVED, "nobody-follows-it", archived_where_nobody_follows, frozenset({ARCHIVED})),
    Legal(UNARCHIVED, "was-not-in-the-archive", restored_though_not_archived),
    Legal(UNARCHIVED, "told-before-the-answer", told_before_the_answer),
]

ILLEGAL: list[Illegal] = [
    Illegal(ARCHIVED, "told-to-nobody", told_to),
    Illegal(ARCHIVED, "lost-the-second-time", lost_after_the_first_time),
    Illegal(ARCHIVED, "nobody-follows-it", archived_where_nobody_follows, Level.SHOULD),
    Illegal(UNARCHIVED, "after-a-refusal", restored_in_silence_after_a_refusal),
    Illegal(UNARCHIVED, "another-one-is-told", another_one_is_told),
]
