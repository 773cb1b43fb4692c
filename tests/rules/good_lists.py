"""Good conversations about lists of threads.

A part of good_traces, which writes them.
"""

from collections.abc import Callable

from harness.trace.trace import Trace
from tests.rules.list_talk import HOME, begin, listed, names, page, pages, start
from tests.rules.traces import CREATED, Talk

HOUR = 3600


def archives(talk: Talk, thread: str) -> Talk:
    """thread/archive, its answer, thread/archived."""
    talk.asks("thread/archive", threadId=thread).answers({})
    return talk.tells("thread/archived", threadId=thread)


def unarchives(talk: Talk, number: int) -> Talk:
    """thread/unarchive, its answer, thread/unarchived."""
    thread = f"thr_{number}"
    talk.asks("thread/unarchive", threadId=thread).answers({"thread": listed(number)})
    return talk.tells("thread/unarchived", threadId=thread)


def listed_threads() -> Trace:
    """Five threads, listed in pages, by each filter and sort key, in and out of the archive."""
    talk = begin(begin(Talk("listed"), 1, 2, 3), 4, cwd=f"{HOME}/below")
    begin(talk, 5, modelProvider="other").plain_turn("turn_6", "thr_1")
    start(talk, 6).start_turn("turn_7", "thr_6", "a ZebraQ").end_turn("turn_7", "thr_6")
    one, two, three = listed(1, updatedAt=CREATED + HOUR), listed(2), listed(3)
    four, five = listed(4, cwd=f"{HOME}/below"), listed(5, modelProvider="other")
    six = listed(6, preview="a ZebraQ")
    everything = (six, five, four, three, two, one)
    pages(talk, *everything)
    page(talk, *everything)
    page(talk, one, six, five, four, three, two, sortKey="updated_at")
    page(talk, *everything, modelProviders=[], searchTerm=None)
    page(talk, five, modelProviders=["other"])
    page(talk, six, five, three, two, one, cwd=HOME)
    page(talk, six, searchTerm="ebraQ")
    page(talk, searchTerm="zebraq")
    page(talk, *everything, sourceKinds=["vscode"])
    page(talk, sourceKinds=["cli"])
    page(talk, *everything, sourceKinds=["cli", "vscode"])
    archives(talk, "thr_2")
    page(talk, two, archived=True)
    pages(talk, six, five, four, three, one, archived=False)
    page(talk, six, five, four, three, one)
    unarchives(talk, 2)
    return page(talk, *everything, archived=None).trace()


def unloaded_threads() -> Trace:
    """A thread that its client leaves is listed and read as it is not loaded; another one is."""
    talk = begin(Talk("unloaded"), 1, 2).asks("thread/unsubscribe", threadId="thr_1")
    talk.answers({"status": "unsubscribed"}).status("notLoaded", "thr_1")
    talk.tells("thread/closed", threadId="thr_1")
    page(talk, listed(2), listed(1)).asks("thread/loaded/list")
    talk.answers({"data": ["thr_2"], "nextCursor": None})
    return talk.read(include=False).trace()


def renamed_threads() -> Trace:
    """A thread gets a name and another one, and is searched by both."""
    talk = names(names(begin(Talk("renamed"), 1, 2), "Garden"), "Kitchen")
    page(talk, listed(2), listed(1))
    return page(talk, searchTerm="Garden").trace()


LISTS: dict[str, Callable[[], Trace]] = {
    "listed": listed_threads,
    "unloaded": unloaded_threads,
    "renamed": renamed_threads,
}
