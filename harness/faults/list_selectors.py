"""Selectors of pages of thread/list, and of threads on them.

A thread "rests" if a turn of it was completed, and nothing of it is under way when the list is
requested: such a thread must be listed.
"""

from typing import Any

from harness.faults.selectors import Selector, answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind

# After one of these requests it is uncertain whether a thread must be listed.
UNSETTLING_METHODS = ("thread/rollback", "thread/compact/start", "review/start")


def page_threads(frame: Frame) -> list[dict[str, Any]]:
    """Return the threads on a page."""
    return [obj(thread) for thread in arr(dig(frame.result, "data"))]


def thread_ids(frame: Frame) -> list[str]:
    """Return the ids of the threads on a page."""
    return [text(thread.get("id")) for thread in page_threads(frame)]


def filters_of(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return the filters of a list's request: its params that are not null, nor for paging."""
    params = site.params_of(frame)
    about_pages = ("cursor", "limit", "sortKey")
    return {k: v for k, v in params.items() if v is not None and k not in about_pages}


def page_limit(site: FaultSite, frame: Frame) -> int:
    """Return the requested limit, 0 if it is not a whole number above 0."""
    value = site.params_of(frame).get("limit")
    return value if isinstance(value, int) and value is not True and value > 0 else 0


def is_resting(site: FaultSite, frame: Frame, thread_id: str) -> bool:
    """Return whether a thread that the client started rests at the request of a list."""
    thread = site.conversation.threads.get(thread_id)
    request = site.request_of(frame)
    if request is None or not site.is_our_thread(thread_id) or thread is None:
        return False
    turns = list(thread.turns.values())
    ended = [turn for turn in turns if turn.completions and turn.completions[-1].seq < request.seq]
    all_ended = len(ended) == len(turns) and any(turn.status == "completed" for turn in ended)
    return all_ended and not is_unsettled(site) and not was_notified_since(site, request, thread_id)


def is_unsettled(site: FaultSite) -> bool:
    """Return whether a request that changes lists is open, or an unsettling one was ever sent."""
    open_now = any(
        site.has_open_request(method)
        for method in ("thread/archive", "thread/unarchive", "turn/start", "thread/name/set")
    )
    return open_now or any(frame.method in UNSETTLING_METHODS for frame in site.frames)


def was_notified_since(site: FaultSite, request: Frame, thread_id: str) -> bool:
    """Return whether a notification about a thread has come since a request was sent."""
    return any(
        frame.kind is Kind.NOTIFICATION and thread_id.encode() in frame.raw
        for frame in site.frames_after(request)
    )


def resting_places(site: FaultSite, frame: Frame) -> list[int]:
    """Return the indexes of the threads on a page that rest."""
    return [
        index
        for index, thread_id in enumerate(thread_ids(frame))
        if is_resting(site, frame, thread_id)
    ]


def resting_page() -> Selector:
    """Select a page of thread/list with a thread that rests."""
    return answer_to("thread/list").where(
        lambda site, f: bool(resting_places(site, f)), "with a thread that rests"
    )


def whole_list(keeps: str, *, value: object = None) -> Selector:
    """Select a list of one page whose only filter is `keeps` (none if "") with this value."""

    def fits(site: FaultSite, frame: Frame) -> bool:
        params = site.params_of(frame)
        no_other_filter = not {*filters_of(site, frame)} - {keeps} and "cursor" not in params
        has_filter = keeps in params and params[keeps] == value if keeps else True
        return no_other_filter and has_filter and dig(frame.result, "nextCursor") is None

    return resting_page().where(fits, f"that is all, by {keeps}" if keeps else "that is all")


def shown_threads(site: FaultSite) -> dict[str, dict[str, Any]]:
    """Return the latest object of each thread in results of thread/start and thread/list, by id."""
    threads: dict[str, dict[str, Any]] = {}
    for frame in site.frames:
        if answer_to("thread/start").fits(site, frame):
            thread = obj(dig(frame.result, "thread"))
            threads[text(thread.get("id"))] = thread
        elif answer_to("thread/list").fits(site, frame):
            threads |= {text(thread.get("id")): thread for thread in page_threads(frame)}
    return threads


def in_archive(site: FaultSite, thread_id: str) -> bool:
    """Return whether the last request to archive or unarchive a thread is thread/archive."""
    moves = [
        frame.method
        for frame in site.frames
        if frame.method in ("thread/archive", "thread/unarchive")
        and thread_id.encode() in frame.raw
    ]
    return moves[-1:] == ["thread/archive"]


def unlisted_threads(
    site: FaultSite, frame: Frame, *, archived: bool = False
) -> list[dict[str, Any]]:
    """Return the resting threads, archived or not, that are missing on a page."""
    on_it = thread_ids(frame)
    return [
        thread
        for thread_id, thread in shown_threads(site).items()
        if thread_id not in on_it
        and is_resting(site, frame, thread_id)
        and in_archive(site, thread_id) is archived
    ]
