"""Faults of a thread that is resumed while a turn of it runs."""

from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.operators import Operator, edit, insert_by, remove
from harness.faults.queue import FrameQueue
from harness.faults.selectors import Selector, answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import dig, text
from harness.trace.frame import Frame
from harness.trace.views import items_of, turns_of

TURNS = ("result", "thread", "turns")


def turn_in_progress(frame: Frame) -> tuple[int, list[dict[str, Any]]] | None:
    """Return the index and the items of the turn in progress in an answer, None without items."""
    for place, turn in enumerate(turns_of(dig(frame.result, "thread"))):
        if turn.get("status") == "inProgress" and items_of(turn):
            return place, items_of(turn)
    return None


def ended_message(site: FaultSite, frame: Frame) -> int | None:
    """Return the index of a shown agentMessage that was completed before the request, or None."""
    return _message(site, frame, is_completed=True)


def open_message(site: FaultSite, frame: Frame) -> int | None:
    """Return the index of a shown agentMessage that has only begun, or None."""
    return _message(site, frame, is_completed=False)


def _message(site: FaultSite, frame: Frame, *, is_completed: bool) -> int | None:
    shown_turn, request = turn_in_progress(frame), site.request_of(frame)
    if shown_turn is None or request is None:
        return None
    turn_id = text(turns_of(dig(frame.result, "thread"))[shown_turn[0]].get("id"))
    turn = site.conversation.turn_at(text(dig(frame.result, "thread", "id")), turn_id)
    for index, item in enumerate(shown_turn[1]):
        live_item = turn.items.get(text(item.get("id"))) if turn is not None else None
        ended = live_item is not None and any(
            end.seq < request.seq for end in live_item.completions
        )
        begun = live_item is not None and bool(live_item.starts) and not live_item.completions
        if item.get("type") == "agentMessage" and (ended if is_completed else begun):
            return index
    return None


def resume_answer(find_message: Any, description: str) -> Selector:
    """Select an answer to thread/resume in which `find_message` finds a message."""
    return answer_to("thread/resume").where(
        lambda site, frame: find_message(site, frame) is not None, description
    )


def repeat_completion(site: FaultSite, frame: Frame) -> Any:
    """Return one more item/completed for the completed message in the answer."""
    shown_turn, index = turn_in_progress(frame), ended_message(site, frame)
    place, items = shown_turn if shown_turn is not None else (0, [])
    return {
        "method": "item/completed",
        "params": {
            "threadId": dig(frame.result, "thread", "id"),
            "turnId": turns_of(dig(frame.result, "thread"))[place].get("id"),
            "item": items[index or 0],
        },
    }


def shorten_open_message(queue: FrameQueue, frame: Frame) -> None:
    """Replace the text of the open message in the answer by an ellipsis."""
    shown_turn, index = turn_in_progress(frame), open_message(queue.site, frame)
    if shown_turn is not None and index is not None:
        edit(*TURNS, shown_turn[0], "items", index, "text", to="…")(queue, frame)


def without_a_message(which: int) -> Operator:
    """Return an operator that removes the first (0) or last (-1) agentMessage from the answer."""

    def operate(queue: FrameQueue, frame: Frame) -> None:
        shown_turn = turn_in_progress(frame)
        place, items = shown_turn if shown_turn is not None else (0, [])
        messages = [index for index, item in enumerate(items) if item.get("type") == "agentMessage"]
        remove(*TURNS, place, "items", messages[which])(queue, frame)

    return operate


def by_a_stranger(site: FaultSite, frame: Frame) -> bool:
    """Return whether an answer shows a running turn, new to the client, with several messages."""
    shown_turn = turn_in_progress(frame)
    messages = (
        [item for item in shown_turn[1] if item.get("type") == "agentMessage"] if shown_turn else []
    )
    if not shown_turn or len(messages) < 2:
        return False
    turn_id = text(turns_of(dig(frame.result, "thread"))[shown_turn[0]].get("id"))
    return site.conversation.turn_at(text(dig(frame.result, "thread", "id")), turn_id) is None


FAULTS: tuple[Fault, ...] = (
    Fault(
        "attached-and-told-again",
        rule="attach.no-duplicate",
        on="attached",
        reason="An item that is shown as finished is completed once.",
        change=first(
            resume_answer(ended_message, "with a message that ended"), insert_by(repeat_completion)
        ),
    ),
    Fault(
        "attached-with-a-shorter-text",
        rule="attach.text-continues",
        on="attached",
        reason="What is shown of a message and its further deltas are the message.",
        change=first(resume_answer(open_message, "with an open message"), shorten_open_message),
    ),
    Fault(
        "attached-without-what-was-said",
        rule="attach.no-gap",
        on="attached",
        reason="Who comes into a turn is shown what it was not told.",
        change=first(
            answer_to("thread/resume").where(by_a_stranger, "of a client that knew nothing of it"),
            without_a_message(0),
        ),
    ),
    Fault(
        "attached-without-the-open-item",
        rule="attach.known-items",
        on="attached",
        reason="Who comes into a turn is shown an item before its deltas come.",
        change=first(
            answer_to("thread/resume").where(by_a_stranger, "of a client that knew nothing of it"),
            without_a_message(-1),
        ),
    ),
)
