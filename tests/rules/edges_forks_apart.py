"""Edge cases of forks: a server may leave a fork unloaded, without subscribers."""

from tests.rules.cases_loading import loaded
from tests.rules.edge import Illegal, Legal
from tests.rules.history_talk import FORK, Past, past, stored
from tests.rules.traces import THREAD, Talk, thread_object

LISTED, KEPT = "loaded.lists-loaded", "loading.kept-for-others"


def forked(status: str) -> Past:
    """A thread with a turn, and its fork, told with this status."""
    shown = {"type": status}
    talk = past().forks(*stored(), status=shown)
    return talk.tells("thread/started", thread=thread_object(FORK, status=shown))


def unloaded_again(status: str) -> Talk:
    """The fork is told to be closed, though the client that asked for it has not left it."""
    return forked(status).tells("thread/closed", threadId=FORK)


LEGAL: list[Legal] = [
    Legal(LISTED, "fork-on-the-disk", lambda: loaded(forked("notLoaded"), THREAD)),
    Legal(LISTED, "fork-in-memory", lambda: loaded(forked("idle"), THREAD, FORK)),
    Legal(KEPT, "fork-on-the-disk", lambda: unloaded_again("notLoaded")),
]

ILLEGAL: list[Illegal] = [
    Illegal(LISTED, "fork-in-memory-not-listed", lambda: loaded(forked("idle"), THREAD)),
    Illegal(KEPT, "fork-in-memory-closed", lambda: unloaded_again("idle")),
]
