"""Selectors of pages of thread/list, and of threads on them.

A thread "rests" where a turn of it was completed, and nothing of it is under way when the list is
asked for: that one must be listed.
"""

from typing import Any

from harness.faults.selectors import Selector, answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind

# Requests after which it is not certain that a thread is stored.
UNSETTLING = ("thread/rollback", "thread/compact/start", "review/start")


def data(frame: Frame) -> list[dict[str, Any]]:
    """The threads on a page."""
    return [obj(thread) for thread in arr(dig(frame.result, "data"))]


def ids(frame: Frame) -> list[str]:
    """Their ids."""
    return [text(thread.get("id")) for thread in data(frame)]


def filters(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """The params of the request that are neither null nor about pages or order."""
    asked = site.asked(frame)
    about_pages = ("cursor", "limit", "sortKey")
    return {k: v for k, v in asked.items() if v is not None and k not in about_pages}


def limit(site: FaultSite, frame: Frame) -> int:
    """The limit that was asked for, 0 where it is no page size."""
    asked = site.asked(frame).get("limit")
    return asked if isinstance(asked, int) and asked is not True and asked > 0 else 0


def rests(site: FaultSite, frame: Frame, thread_id: str) -> bool:
    """Return whether a thread of ours has completed a turn, and was left alone since then."""
    thread = site.conversation.threads.get(thread_id)
    request = site.request_of(frame)
    if request is None or not site.our_thread(thread_id) or thread is None:
        return False
    turns = list(thread.turns.values())
    ended = [turn for turn in turns if turn.completed and turn.completed[-1].seq < request.seq]
    whole = len(ended) == len(turns) and any(turn.status == "completed" for turn in ended)
    return whole and not unsettled(site) and not told_since(site, request, thread_id)


def unsettled(site: FaultSite) -> bool:
    """Return whether a request of ours has no answer yet, or was one after which little is
    certain.
    """
    open_now = any(
        site.unanswered(one)
        for one in ("thread/archive", "thread/unarchive", "turn/start", "thread/name/set")
    )
    return open_now or any(one.method in UNSETTLING for one in site.frames)


def told_since(site: FaultSite, request: Frame, thread_id: str) -> bool:
    """Return whether a notification about a thread has come since a request was sent."""
    return any(
        one.kind is Kind.NOTIFICATION and thread_id.encode() in one.raw
        for one in site.later(request)
    )


def resting(site: FaultSite, frame: Frame) -> list[int]:
    """The places of the threads on a page that rest."""
    return [at for at, one in enumerate(ids(frame)) if rests(site, frame, one)]


def page() -> Selector:
    """A page of thread/list with a thread that rests."""
    return answer_to("thread/list").where(
        lambda site, f: bool(resting(site, f)), "with a thread that rests"
    )


def all_of_it(keeps: str, *, value: object = None) -> Selector:
    """The only page of a list without filters but one: `keeps`, with a value or with any."""

    def fits(site: FaultSite, frame: Frame) -> bool:
        asked = site.asked(frame)
        alone = not {*filters(site, frame)} - {keeps} and "cursor" not in asked
        has = keeps in asked and asked[keeps] == value if keeps else True
        return alone and has and dig(frame.result, "nextCursor") is None

    return page().where(fits, f"that is all, by {keeps}" if keeps else "that is all")


def shown(site: FaultSite) -> dict[str, dict[str, Any]]:
    """The threads that replies to thread/start and pages of thread/list showed, as shown last."""
    found: dict[str, dict[str, Any]] = {}
    for frame in site.frames:
        if answer_to("thread/start").fits(site, frame):
            thread = obj(dig(frame.result, "thread"))
            found[text(thread.get("id"))] = thread
        elif answer_to("thread/list").fits(site, frame):
            found |= {text(thread.get("id")): thread for thread in data(frame)}
    return found


def in_archive(site: FaultSite, thread_id: str) -> bool:
    """Return whether the last request to archive a thread, or to bring it back, archived it."""
    moves = [
        one.method
        for one in site.frames
        if one.method in ("thread/archive", "thread/unarchive") and thread_id.encode() in one.raw
    ]
    return moves[-1:] == ["thread/archive"]


def others(site: FaultSite, frame: Frame, *, archived: bool = False) -> list[dict[str, Any]]:
    """The threads that rest, in the archive or outside of it, and are not on a page."""
    on_it = ids(frame)
    return [
        thread
        for thread_id, thread in shown(site).items()
        if thread_id not in on_it
        and rests(site, frame, thread_id)
        and in_archive(site, thread_id) is archived
    ]
