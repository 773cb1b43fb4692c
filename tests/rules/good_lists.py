"""Stored conversations about lists of threads that obey the specification fully.

A part of good_traces, which writes them.
"""

from collections.abc import Callable

from harness.trace.trace import Trace
from tests.rules.list_talk import HOME, begin, listed, page, pages
from tests.rules.traces import Talk


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
    """Five threads, listed in pages and by each filter, in and out of the archive."""
    talk = begin(begin(Talk("listed"), 1, 2, 3), 4, cwd=f"{HOME}/below")
    begin(talk, 5, modelProvider="other")
    below, other = {"cwd": f"{HOME}/below"}, {"modelProvider": "other"}
    one, two, three = listed(1), listed(2), listed(3)
    four, five = listed(4, **below), listed(5, **other)
    everything = (five, four, three, two, one)
    pages(talk, *everything)
    page(talk, *everything)
    page(talk, *everything, modelProviders=[])
    page(talk, five, modelProviders=["other"])
    page(talk, five, three, two, one, cwd=HOME)
    archives(talk, "thr_2")
    page(talk, two, archived=True)
    pages(talk, five, four, three, one, archived=False)
    unarchives(talk, 2)
    return page(talk, *everything, archived=None).trace()


LISTS: dict[str, Callable[[], Trace]] = {"listed": listed_threads}
