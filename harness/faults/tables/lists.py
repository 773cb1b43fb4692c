"""Faults of thread/list: its pages, and the order of the threads on them."""

from collections.abc import Sequence
from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.list_selectors import (
    is_resting,
    page_limit,
    page_threads,
    resting_page,
    resting_places,
    whole_list,
)
from harness.faults.operators import edit, edit_by, refuse
from harness.faults.selectors import answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import dig, text
from harness.trace.frame import Frame

DATA = ("result", "data")


def without_one(site: FaultSite, frame: Frame) -> list[Any]:
    """Return the threads of a page without its last thread at rest."""
    dropped = resting_places(site, frame)[-1]
    return [thread for index, thread in enumerate(page_threads(frame)) if index != dropped]


def no_threads(_: FaultSite, frame: Frame) -> list[Any]:
    """Return an empty page."""
    return page_threads(frame)[:0]


def with_strangers(site: FaultSite, frame: Frame) -> list[Any]:
    """Return the threads of a page and unknown ones, together one more than the limit."""
    threads = page_threads(frame)
    more = page_limit(site, frame) + 1 - len(threads)
    return threads + [{**threads[-1], "id": f"thr_98765432{number}"} for number in range(more)]


def with_one_twice(site: FaultSite, frame: Frame) -> list[Any]:
    """Return the threads of a page, with the last thread at rest twice."""
    index = resting_places(site, frame)[-1]
    threads = page_threads(frame)
    return [*threads[: index + 1], threads[index], *threads[index + 1 :]]


def page_before(site: FaultSite, frame: Frame) -> Frame | None:
    """Return the page that gave the cursor of this one, None if there is none."""
    params = site.params_of(frame)
    for other in site.frames:
        if other.seq < frame.seq and answer_to("thread/list").fits(site, other):
            former = {k: v for k, v in site.params_of(other).items() if k != "cursor"}
            same = former == {k: v for k, v in params.items() if k != "cursor"}
            if same and dig(other.result, "nextCursor") == params.get("cursor"):
                return other
    return None


def follows_a_page(site: FaultSite, frame: Frame) -> bool:
    """Return whether a page has a thread, and the last one of the page before is at rest."""
    before = page_before(site, frame)
    cursor = site.params_of(frame).get("cursor")
    return bool(
        cursor
        and page_threads(frame)
        and before
        and _last_if_resting(site, frame, before) is not None
    )


def _last_if_resting(site: FaultSite, frame: Frame, before: Frame) -> dict[str, Any] | None:
    """Return the last thread of the page before, None if it is not at rest."""
    last = page_threads(before)[-1:]
    return last[0] if last and is_resting(site, frame, text(last[0].get("id"))) else None


def with_one_of_the_page_before(site: FaultSite, frame: Frame) -> list[Any]:
    """Return the threads of a page, with the last one of the page before in place of the first."""
    before = page_before(site, frame)
    repeated = _last_if_resting(site, frame, before) if before is not None else None
    return [repeated, *page_threads(frame)[1:]]


def follows(site: FaultSite, frame: Frame) -> bool:
    """Return whether a page was requested by the cursor of another."""
    return bool(site.params_of(frame).get("cursor")) and page_before(site, frame) is not None


def in_order_of_creation(site: FaultSite, frame: Frame) -> bool:
    """Return whether a page by creation can be put out of order."""
    sort_key = site.params_of(frame).get("sortKey") or "created_at"
    return sort_key == "created_at" and bool(out_of_order(page_threads(frame), "createdAt"))


def not_by_creation(_: FaultSite, frame: Frame) -> list[Any]:
    """Return the threads of a page, out of the order of their creation."""
    return out_of_order(page_threads(frame), "createdAt")


def out_of_order(threads: Sequence[dict[str, Any]], member: str) -> list[dict[str, Any]]:
    """Return the threads with one between two that are both later, or both earlier.

    The difference is at least a second; empty if there are no such three.
    """
    if not all(isinstance(thread.get(member), int | float) for thread in threads):
        return []
    for middle in threads:
        for sign in (1, -1):
            apart = [thread for thread in threads if sign * (thread[member] - middle[member]) >= 1]
            if len(apart) > 1:
                first = [apart[0], middle, apart[1]]
                return [*first, *(thread for thread in threads if thread not in first)]
    return []


def by_change(site: FaultSite, frame: Frame) -> bool:
    """Return whether a page by the time of the last change can be put out of order."""
    is_by_change = site.params_of(frame).get("sortKey") == "updated_at" and not has_busy_thread(
        site, frame
    )
    return is_by_change and bool(out_of_order(page_threads(frame), "updatedAt"))


def not_by_change(_: FaultSite, frame: Frame) -> list[Any]:
    """Return the threads of a page, out of the order of their last changes."""
    return out_of_order(page_threads(frame), "updatedAt")


def has_busy_thread(site: FaultSite, frame: Frame) -> bool:
    """Return whether a thread on a page is not at rest."""
    return len(resting_places(site, frame)) < len(page_threads(frame))


def with_turns(site: FaultSite, frame: Frame) -> list[Any]:
    """Return the threads of a page, each with a turn."""
    turn: dict[str, Any] = {"id": "turn_1", "items": [], "status": "completed", "error": None}
    return [{**thread, "turns": [turn]} for thread in page_threads(frame)]


FAULTS: tuple[Fault, ...] = (
    Fault(
        "list-page-longer-than-the-limit",
        rule="list.page-size",
        on="listed",
        reason="limit is the size of a page.",
        change=first(
            answer_to("thread/list").where(
                lambda site, f: bool(page_limit(site, f) and page_threads(f)), "with a limit"
            ),
            edit_by(*DATA, value=with_strangers),
        ),
    ),
    Fault(
        "list-without-a-thread",
        rule="list.complete",
        on="listed",
        reason="Following the cursors to the end gives every thread.",
        change=first(whole_list(""), edit_by(*DATA, value=without_one)),
    ),
    Fault(
        "list-of-the-archive-without-a-thread",
        rule="list.complete",
        on="listed",
        reason="archived true lists the threads that are in the archive.",
        change=first(whole_list("archived", value=True), edit_by(*DATA, value=without_one)),
    ),
    Fault(
        "list-of-no-provider-is-empty",
        rule="list.complete",
        on="listed",
        reason="An empty list of model providers keeps all threads.",
        change=first(whole_list("modelProviders", value=[]), edit_by(*DATA, value=no_threads)),
    ),
    Fault(
        "list-with-a-thread-twice",
        rule="list.once",
        on="listed",
        reason="A thread is listed once.",
        change=first(
            resting_page().where(lambda site, f: not page_limit(site, f), "without a limit"),
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
    Fault(
        "list-cursor-refused",
        rule="list.cursor-leads-on",
        on="listed",
        reason="The cursor that a page gave leads to the next one.",
        change=first(
            answer_to("thread/list").where(follows, "that follows another"),
            refuse("no such cursor"),
        ),
    ),
    Fault(
        "list-empty-page-for-ever",
        rule="list.cursor-leads-on",
        on="listed",
        reason="Following the cursors comes to an end.",
        change=first(
            answer_to("thread/list").where(follows, "that follows another"),
            edit(*DATA, to=[]),
            edit_by("result", "nextCursor", value=lambda site, f: site.params_of(f).get("cursor")),
        ),
    ),
    Fault(
        "list-out-of-order",
        rule="list.order",
        on="listed",
        reason="A list is sorted by the time of creation.",
        change=first(
            answer_to("thread/list").where(in_order_of_creation, "of three or more by creation"),
            edit_by(*DATA, value=not_by_creation),
        ),
    ),
    Fault(
        "list-by-change-out-of-order",
        rule="list.order",
        on="listed",
        reason="sortKey updated_at sorts by the time of the last change.",
        change=first(
            answer_to("thread/list").where(by_change, "of three or more by change"),
            edit_by(*DATA, value=not_by_change),
        ),
    ),
    Fault(
        "listed-with-turns",
        rule="thread.turns-unasked",
        on="listed",
        reason="turns are populated only when explicitly requested, and thread/list has no param "
        "for it.",
        change=first(resting_page(), edit_by(*DATA, value=with_turns)),
    ),
)
