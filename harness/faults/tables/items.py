"""Faults of items and deltas."""

from harness.faults.base import Fault
from harness.faults.changes import first, for_each_from, requires, wait_for
from harness.faults.item_selectors import (
    begun_and_streamed,
    delta,
    delta_before_another,
    item_completed,
    item_in,
    item_started,
    last_delta,
)
from harness.faults.operators import drop, duplicate, edit, edit_by, put, rename_ids
from harness.faults.queue import FrameQueue, Steps
from harness.faults.selectors import Verdict, notification, turn_completed
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame
from harness.trace.views import ItemView

SUMMARY = "item/reasoning/summaryTextDelta"
PART_ADDED = "item/reasoning/summaryPartAdded"
RAW = "item/reasoning/textDelta"


def start_behind_first_delta(queue: FrameQueue, frame: Frame) -> None:
    """Move item/started behind the first delta of its item."""
    queue.move_behind(frame, queue.site.deltas(item_in(queue.site, frame))[0])


def was_cut_off(site: FaultSite, frame: Frame) -> bool:
    """Return whether an item's turn was interrupted, cancelled, or failed for good."""
    turn = item_in(site, frame).turn
    final = [error for error in turn.errors if obj(error.params).get("willRetry") is False]
    cancelled = site.find_approval(lambda a: a.turn is turn and a.decision == "cancel")
    return bool(turn.interrupts or final or cancelled)


def second_message_of_its_turn(site: FaultSite, frame: Frame) -> bool:
    """Return whether an agentMessage of the same turn was completed before."""
    return _earlier_message(site, frame) is not None


def _earlier_message(site: FaultSite, frame: Frame) -> ItemView | None:
    own_item = item_in(site, frame)
    for item in own_item.turn.items.values():
        if item is not own_item and item.type == "agentMessage" and item.completions:
            return item
    return None


def id_of_the_first_message(queue: FrameQueue) -> Steps:
    """Give the second message of a turn the id of the first."""
    second = item_started("agentMessage").where(second_message_of_its_turn, "after another one")
    frame = yield from wait_for(queue, second)
    own_item, earlier = item_in(queue.site, frame), _earlier_message(queue.site, frame)
    names = {own_item.id: own_item.id if earlier is None else earlier.id}

    def rename(now: Frame) -> None:
        if queue.site.item_of(now) is own_item:
            queue.alter(now, lambda message: rename_ids(message, names))

    yield from for_each_from(queue, frame, rename)


def swap_with_next_delta(queue: FrameQueue, frame: Frame) -> None:
    """Exchange a delta and the next one of its item."""
    queue.swap(frame, _next(queue.site, frame))


def differs_from_the_next(site: FaultSite, frame: Frame) -> bool:
    """Return whether exchanging a delta and the next one changes the text."""
    left, right = (text(obj(f.params).get("delta")) for f in (frame, _next(site, frame)))
    return left + right != right + left


def _next(site: FaultSite, frame: Frame) -> Frame:
    return next(f for f in site.deltas(item_in(site, frame)) if f.seq > frame.seq)


def longer_text(site: FaultSite, frame: Frame) -> str:
    """Return the text of an item, with an end that was never streamed."""
    return text(dig(frame.params, "item", "text")) + "!"


def was_streamed(site: FaultSite, frame: Frame) -> bool:
    """Return whether an item had a delta."""
    return bool(site.deltas(item_in(site, frame)))


def of_the_first_part(site: FaultSite, frame: Frame) -> bool:
    """Return whether a delta is of the first part of a summary."""
    return obj(frame.params).get("summaryIndex") == 0


def last_of_the_first_part(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether a delta is the last of several in a summary's first part; None until known."""
    item = item_in(site, frame)
    deltas = [f for f in site.deltas(item, SUMMARY) if of_the_first_part(site, f)]
    if deltas[-1] is not frame:
        return False
    ended = bool(item.completions) or site.deltas(item, SUMMARY)[-1] is not frame
    return len(deltas) > 1 if ended else None


def has_a_text(site: FaultSite, frame: Frame) -> bool:
    """Return whether a userMessage has a text element."""
    return _text_place(frame) is not None


def _text_place(frame: Frame) -> int | None:
    parts = arr(dig(frame.params, "item", "content"))
    return next(
        (place for place, part in enumerate(parts) if obj(part).get("type") == "text"), None
    )


def another_echo(queue: FrameQueue, frame: Frame) -> None:
    """Change the first text of a userMessage."""
    place = _text_place(frame)
    if place is not None:
        path = ("params", "item", "content", place, "text")
        queue.alter(frame, lambda message: put(message, path, "something else"))


def before_a_second_part(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether a summary has a second part; None until that or the end of the item."""
    item = site.item_of(frame)
    if item is None:
        return False
    parts = {obj(f.params).get("summaryIndex") for f in site.deltas(item, SUMMARY)}
    return True if {0, 1} <= parts else False if item.completions else None


def no_boundary(queue: FrameQueue) -> Steps:
    """Drop each summaryPartAdded of an item with several parts."""
    announced = notification(PART_ADDED).where(before_a_second_part, "before a second part")
    frame = yield from wait_for(queue, announced)
    item = item_in(queue.site, frame)

    def drop_boundary(now: Frame) -> None:
        if now.method == PART_ADDED and queue.site.item_of(now) is item:
            queue.drop(now)

    yield from for_each_from(queue, frame, drop_boundary)


LIFECYCLE = "An item's deltas follow its item/started."
REBUILDS = "The deltas of an agentMessage rebuild the reply."

FAULTS: tuple[Fault, ...] = (
    Fault(
        "delta-before-its-item",
        rule="item.started-before-delta",
        on="plain-turn",
        reason=LIFECYCLE,
        change=first(
            item_started().where(begun_and_streamed, "with a delta"), start_behind_first_delta
        ),
    ),
    Fault(
        "item-never-started",
        rule="item.completed-after-started",
        on="plain-turn",
        reason="An item is started before it is completed.",
        change=first(item_started("userMessage", "agentMessage"), drop),
    ),
    Fault(
        "item-completed-twice",
        rule="item.completed-once",
        on="plain-turn",
        reason="item/completed carries the final item, so there is one.",
        change=first(item_completed(), duplicate),
    ),
    Fault(
        "item-never-completed",
        rule="item.completes",
        on="plain-turn",
        reason="A started item is completed.",
        change=first(item_completed(), drop),
        condition=requires(turn_completed("completed")),
    ),
    Fault(
        "item-cut-off-and-left-open",
        rule="item.completes",
        on="interrupted",
        reason="The lifecycle ends with item/completed; that it also does after an interrupt is "
        "our reading, so this is recorded only.",
        change=first(item_completed().where(was_cut_off, "that was cut off"), drop),
    ),
    Fault(
        "item-changes-its-type",
        rule="item.same-type",
        on="plain-turn",
        reason="The final item is the item that was started.",
        change=first(
            item_completed("agentMessage"), edit("params", "item", "type", to="contextCompaction")
        ),
    ),
    Fault(
        "item-id-used-again",
        rule="item.ids-not-reused",
        on="many-deltas",
        reason="Deltas are joined by itemId, so one id is one item.",
        change=id_of_the_first_message,
    ),
    Fault(
        "delta-lost",
        rule="delta.rebuilds-reply",
        on="plain-turn",
        reason=REBUILDS,
        change=first(delta_before_another("agentMessage"), drop),
    ),
    Fault(
        "delta-repeated",
        rule="delta.rebuilds-reply",
        on="many-deltas",
        reason=REBUILDS,
        change=first(last_delta("agentMessage"), duplicate),
    ),
    Fault(
        "deltas-out-of-order",
        rule="delta.rebuilds-reply",
        on="many-deltas",
        reason="The deltas of an agentMessage rebuild the reply, in the order in which they come.",
        change=first(
            delta_before_another("agentMessage").where(differs_from_the_next, "that differs"),
            swap_with_next_delta,
        ),
    ),
    Fault(
        "reply-longer-than-its-deltas",
        rule="delta.rebuilds-reply",
        on="plain-turn",
        reason=REBUILDS,
        change=first(
            item_completed("agentMessage").where(was_streamed, "that was streamed"),
            edit_by("params", "item", "text", value=longer_text),
        ),
    ),
    Fault(
        "summary-delta-lost",
        rule="delta.reasoning-summary",
        on="reasoning",
        reason="The summary of a reasoning item is what was streamed of it.",
        change=first(
            delta("reasoning", method=SUMMARY)
            .where(of_the_first_part, "of the first part")
            .where(last_of_the_first_part, "and its last of several"),
            drop,
        ),
    ),
    Fault(
        "summary-delta-of-another-part",
        rule="delta.reasoning-summary",
        on="reasoning",
        reason="summaryIndex says which part of the summary a delta belongs to.",
        change=first(last_delta("reasoning", method=SUMMARY), edit("params", "summaryIndex", to=0)),
    ),
    Fault(
        "delta-of-another-kind",
        rule="delta.kind-matches-item",
        on="plain-turn",
        reason="Each kind of item has its own deltas.",
        change=first(delta("agentMessage"), edit("method", to="item/plan/delta")),
    ),
    Fault(
        "user-message-changed",
        rule="user-message.echo",
        on="plain-turn",
        reason="The userMessage shows the input that was sent.",
        change=first(item_completed("userMessage").where(has_a_text, "with a text"), another_echo),
    ),
    Fault(
        "raw-delta-lost",
        rule="delta.reasoning-content",
        on="reasoning",
        reason="The raw deltas of one index are that block of the completed item's content.",
        change=first(delta_before_another("reasoning", method=RAW), drop),
    ),
    Fault(
        "summary-section-without-boundary",
        rule="delta.summary-part-announced",
        on="reasoning",
        reason="item/reasoning/summaryPartAdded tells of each boundary of sections.",
        change=no_boundary,
    ),
)
