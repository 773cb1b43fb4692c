"""Faults of thread/list: its pages, what the filters let through, and the order.

Where a fault acts on a thread of a list, it is one that rests: a turn of it was completed, and
nothing of it is under way when the list is asked for.
"""

from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.operators import edit_by
from harness.faults.selectors import Selector, answer_to
from harness.faults.site import FaultSite
from harness.trace.frame import Frame, Kind
from harness.trace.values import arr, dig, obj, text

DATA = ("result", "data")
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
    """Whether a thread of ours has completed a turn, and was left alone since then."""
    thread = site.conversation.threads.get(thread_id)
    request = site.request_of(frame)
    if request is None or not site.our_thread(thread_id) or thread is None:
        return False
    turns = list(thread.turns.values())
    ended = [turn for turn in turns if turn.completed and turn.completed[-1].seq < request.seq]
    whole = len(ended) == len(turns) and any(turn.status == "completed" for turn in ended)
    return whole and not unsettled(site) and not told_since(site, request, thread_id)


def unsettled(site: FaultSite) -> bool:
    """Whether a request of ours has no answer yet, or was one after which little is certain."""
    open_now = any(
        site.unanswered(one)
        for one in ("thread/archive", "thread/unarchive", "turn/start", "thread/name/set")
    )
    return open_now or any(one.method in UNSETTLING for one in site.frames)


def told_since(site: FaultSite, request: Frame, thread_id: str) -> bool:
    """Whether a notification about a thread has come since a request was sent."""
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


def without_one(site: FaultSite, frame: Frame) -> list[Any]:
    """The threads of a page but for one that rests."""
    gone = resting(site, frame)[-1]
    return [thread for at, thread in enumerate(data(frame)) if at != gone]


def nothing(_: FaultSite, frame: Frame) -> list[Any]:
    """None of the threads of a page."""
    return data(frame)[:0]


def with_strangers(site: FaultSite, frame: Frame) -> list[Any]:
    """The threads of a page, and as many others as it takes to pass the limit."""
    threads = data(frame)
    more = limit(site, frame) + 1 - len(threads)
    return threads + [{**threads[-1], "id": f"thr_98765432{number}"} for number in range(more)]


def with_one_twice(site: FaultSite, frame: Frame) -> list[Any]:
    """The threads of a page, with one that rests twice."""
    at = resting(site, frame)[-1]
    threads = data(frame)
    return [*threads[: at + 1], threads[at], *threads[at + 1 :]]


def page_before(site: FaultSite, frame: Frame) -> Frame | None:
    """The page that gave the cursor by which this one was asked for."""
    asked = site.asked(frame)
    for other in site.frames:
        if other.seq < frame.seq and answer_to("thread/list").fits(site, other):
            former = {k: v for k, v in site.asked(other).items() if k != "cursor"}
            same = former == {k: v for k, v in asked.items() if k != "cursor"}
            if same and dig(other.result, "nextCursor") == asked.get("cursor"):
                return other
    return None


def follows_a_page(site: FaultSite, frame: Frame) -> bool:
    """Whether a page has at least one thread, as has the page before, with one that rests."""
    before = page_before(site, frame)
    asked = site.asked(frame).get("cursor")
    return bool(asked and data(frame) and before and _again(site, frame, before) is not None)


def _again(site: FaultSite, frame: Frame, before: Frame) -> dict[str, Any] | None:
    """The last thread of the page before, where it rests."""
    last = data(before)[-1:]
    return last[0] if last and rests(site, frame, text(last[0].get("id"))) else None


def with_one_of_the_page_before(site: FaultSite, frame: Frame) -> list[Any]:
    """The threads of a page, with the last one of the page before in place of the first."""
    before = page_before(site, frame)
    again = _again(site, frame, before) if before is not None else None
    return [again, *data(frame)[1:]]


FAULTS: tuple[Fault, ...] = (
    Fault(
        "list-page-longer-than-the-limit",
        rule="list.page-size",
        on="listed",
        reason="limit is the size of a page.",
        change=first(
            answer_to("thread/list").where(
                lambda site, f: bool(limit(site, f) and data(f)), "with a limit"
            ),
            edit_by(*DATA, value=with_strangers),
        ),
    ),
    Fault(
        "list-without-a-thread",
        rule="list.complete",
        on="listed",
        reason="Following the cursors to the end gives every thread.",
        change=first(all_of_it(""), edit_by(*DATA, value=without_one)),
    ),
    Fault(
        "list-of-the-archive-without-a-thread",
        rule="list.complete",
        on="listed",
        reason="archived true lists the threads that are in the archive.",
        change=first(all_of_it("archived", value=True), edit_by(*DATA, value=without_one)),
    ),
    Fault(
        "list-of-no-provider-is-empty",
        rule="list.complete",
        on="listed",
        reason="An empty list of model providers keeps all threads.",
        change=first(all_of_it("modelProviders", value=[]), edit_by(*DATA, value=nothing)),
    ),
    Fault(
        "list-with-a-thread-twice",
        rule="list.once",
        on="listed",
        reason="A thread is listed once.",
        change=first(
            page().where(lambda site, f: not limit(site, f), "without a limit"),
            edit_by(*DATA, value=with_one_twice),
        ),
    ),
    Fault(
        "list-with-a-thread-of-the-page-before",
        rule="list.once",
        on="listed",
        reason="A cursor goes on behind the page that gave it.",
        change=first(
            answer_to("thread/list").where(follows_a_page, "that follows another"),
            edit_by(*DATA, value=with_one_of_the_page_before),
        ),
    ),
)
