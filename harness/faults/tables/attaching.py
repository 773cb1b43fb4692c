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


def running(frame: Frame) -> tuple[int, list[dict[str, Any]]] | None:
    """The place and the items of the turn in progress that an answer shows, if it has items."""
    for place, turn in enumerate(turns_of(dig(frame.result, "thread"))):
        if turn.get("status") == "inProgress" and items_of(turn):
            return place, items_of(turn)
    return None


def ended_message(site: FaultSite, frame: Frame) -> int | None:
    """The place of an agentMessage that is shown and was told as completed before."""
    return _message(site, frame, over=True)


def open_message(site: FaultSite, frame: Frame) -> int | None:
    """The place of an agentMessage that is shown and was told as begun only, or not at all here."""
    return _message(site, frame, over=False)


def _message(site: FaultSite, frame: Frame, *, over: bool) -> int | None:
    shown, request = running(frame), site.request_of(frame)
    if shown is None or request is None:
        return None
    turn_id = text(turns_of(dig(frame.result, "thread"))[shown[0]].get("id"))
    turn = site.conversation.turn_at(text(dig(frame.result, "thread", "id")), turn_id)
    for at, item in enumerate(shown[1]):
        told = turn.items.get(text(item.get("id"))) if turn is not None else None
        ended = told is not None and any(end.seq < request.seq for end in told.completed)
        begun = told is not None and bool(told.started) and not told.completed
        if item.get("type") == "agentMessage" and (ended if over else begun):
            return at
    return None


def resumed(with_message: Any, what: str) -> Selector:
    """An answer to thread/resume that shows a turn in progress with such a message."""
    return answer_to("thread/resume").where(
        lambda site, frame: with_message(site, frame) is not None, what
    )


def told_again(site: FaultSite, frame: Frame) -> Any:
    """item/completed of a message that the answer shows, once more."""
    shown, at = running(frame), ended_message(site, frame)
    place, items = shown if shown is not None else (0, [])
    return {
        "method": "item/completed",
        "params": {
            "threadId": dig(frame.result, "thread", "id"),
            "turnId": turns_of(dig(frame.result, "thread"))[place].get("id"),
            "item": items[at or 0],
        },
    }


def shown_shorter(queue: FrameQueue, frame: Frame) -> None:
    """The open message lacks what was said so far."""
    shown, at = running(frame), open_message(queue.site, frame)
    if shown is not None and at is not None:
        edit(*TURNS, shown[0], "items", at, "text", to="…")(queue, frame)


def without_a_message(which: int) -> Operator:
    """One of the messages of the agent is not shown: the first (0), or the last (-1)."""

    def operate(queue: FrameQueue, frame: Frame) -> None:
        shown = running(frame)
        place, items = shown if shown is not None else (0, [])
        said = [at for at, item in enumerate(items) if item.get("type") == "agentMessage"]
        remove(*TURNS, place, "items", said[which])(queue, frame)

    return operate


def by_a_stranger(site: FaultSite, frame: Frame) -> bool:
    """Return whether the client that resumes was told nothing of the turn before, but is
    shown it.
    """
    shown = running(frame)
    messages = [item for item in shown[1] if item.get("type") == "agentMessage"] if shown else []
    if not shown or len(messages) < 2:
        return False
    turn_id = text(turns_of(dig(frame.result, "thread"))[shown[0]].get("id"))
    return site.conversation.turn_at(text(dig(frame.result, "thread", "id")), turn_id) is None


FAULTS: tuple[Fault, ...] = (
    Fault(
        "attached-and-told-again",
        rule="attach.no-duplicate",
        on="attached",
        reason="An item that is shown as finished is completed once.",
        change=first(resumed(ended_message, "with a message that ended"), insert_by(told_again)),
    ),
    Fault(
        "attached-with-a-shorter-text",
        rule="attach.text-continues",
        on="attached",
        reason="What is shown of a message and its further deltas are the message.",
        change=first(resumed(open_message, "with an open message"), shown_shorter),
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
