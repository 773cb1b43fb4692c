"""Faults of thread/list: its pages, and the order of the threads on them.

What the filters let through is in list_filters.
"""

from collections.abc import Sequence
from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.list_selectors import (
    all_of_it,
    data,
    limit,
    page,
    resting,
    rests,
)
from harness.faults.operators import edit, edit_by, refuse
from harness.faults.selectors import answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import dig, text
from harness.trace.frame import Frame

DATA = ("result", "data")


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
    """Return whether a page has at least one thread, as has the page before, with one that
    rests.
    """
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


def follows(site: FaultSite, frame: Frame) -> bool:
    """Return whether a page was asked for by the cursor of another."""
    return bool(site.asked(frame).get("cursor")) and page_before(site, frame) is not None


def in_order_of_creation(site: FaultSite, frame: Frame) -> bool:
    """Return whether a page by creation can be put out of order."""
    sort_key = site.asked(frame).get("sortKey") or "created_at"
    return sort_key == "created_at" and bool(out_of_order(data(frame), "createdAt"))


def not_by_creation(_: FaultSite, frame: Frame) -> list[Any]:
    """The threads of a page, out of the order of their creation."""
    return out_of_order(data(frame), "createdAt")


def out_of_order(threads: Sequence[dict[str, Any]], member: str) -> list[dict[str, Any]]:
    """The threads with one between two that are both a second or more later, or both earlier.

    Nothing where there are no such three.
    """
    if not all(isinstance(one.get(member), int | float) for one in threads):
        return []
    for middle in threads:
        for sign in (1, -1):
            apart = [one for one in threads if sign * (one[member] - middle[member]) >= 1]
            if len(apart) > 1:
                first = [apart[0], middle, apart[1]]
                return [*first, *(one for one in threads if one not in first)]
    return []


def by_change(site: FaultSite, frame: Frame) -> bool:
    """Return whether a page by the time of the last change can be put out of order."""
    asked = site.asked(frame).get("sortKey") == "updated_at" and not told(site, frame)
    return asked and bool(out_of_order(data(frame), "updatedAt"))


def not_by_change(_: FaultSite, frame: Frame) -> list[Any]:
    """The threads of a page, out of the order of their last changes."""
    return out_of_order(data(frame), "updatedAt")


def told(site: FaultSite, frame: Frame) -> bool:
    """Return whether a thread on a page does not rest."""
    return len(resting(site, frame)) < len(data(frame))


def with_turns(site: FaultSite, frame: Frame) -> list[Any]:
    """The threads of a page, each with a turn."""
    turn: dict[str, Any] = {"id": "turn_1", "items": [], "status": "completed", "error": None}
    return [{**thread, "turns": [turn]} for thread in data(frame)]


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
            edit_by("result", "nextCursor", value=lambda site, f: site.asked(f).get("cursor")),
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
        change=first(page(), edit_by(*DATA, value=with_turns)),
    ),
)
