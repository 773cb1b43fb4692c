"""Faults of turns: announcements, order, turn objects, errors."""

from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import delay, first, rename_id, throughout, wait_for
from harness.faults.item_selectors import delta, item_completed, item_started
from harness.faults.operators import drop, duplicate, edit, edit_by
from harness.faults.queue import FrameQueue, Steps
from harness.faults.selectors import (
    Selector,
    answer_to,
    notification,
    turn_completed,
    turn_in,
    turn_reply,
    turn_started,
)
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame

STATUS = ("params", "turn", "status")
ERROR = ("params", "turn", "error")
TROUBLE = {"message": "the model cannot be reached", "agentErrorInfo": "Other"}
ITEMS = [{"type": "contextCompaction", "id": "left-over"}]


def error_of_a_turn() -> Selector:
    """Select an error notification about a turn that this client started."""
    return notification("error").where(
        lambda site, f: site.is_our_turn(site.turn_of(f)), "of a turn of ours"
    )


def its_item_starts(site: FaultSite, late: Frame, now: Frame) -> bool:
    """Return whether `now` starts an item of the turn of `late`."""
    return now.method == "item/started" and site.turn_of(now) is turn_in(site, late)


def its_turn_ends(site: FaultSite, late: Frame, now: Frame) -> bool:
    """Return whether `now` completes the turn of `late`."""
    return now.method == "turn/completed" and site.turn_of(now) is turn_in(site, late)


def was_interrupted_first(site: FaultSite, frame: Frame) -> bool:
    """Return whether a turn ends after its turn/interrupt was answered with success."""
    interrupts = turn_in(site, frame).interrupts
    answered = (
        site.request_of(other)
        for other in site.frames
        if answer_to("turn/interrupt").fits(site, other)
    )
    return any(request in interrupts for request in answered)


def after_an_ended_turn(site: FaultSite, frame: Frame) -> bool:
    """Return whether a turn/start was sent after the end of another turn of this client."""
    request = site.request_of(frame)
    ends = [
        turn.completions[0].seq
        for turn in site.conversation.turns.values()
        if turn.completions and site.is_our_turn(turn)
    ]
    return request is not None and any(seq < request.seq for seq in ends)


def id_of_the_turn_before(queue: FrameQueue) -> Steps:
    """Give a later turn the id of the first, which has ended."""
    reply = turn_reply().where(after_an_ended_turn, "after another one")
    frame = yield from wait_for(queue, reply)
    ended = next(
        turn
        for turn in queue.site.conversation.turns.values()
        if turn.completions and queue.site.is_our_turn(turn)
    )
    yield from rename_id(queue, frame, turn_in(queue.site, frame).id, ended.id)


def turn_id_of_another_shape(queue: FrameQueue) -> Steps:
    """Replace the id of a turn by a UUID everywhere."""
    named = Selector(
        "turn of ours", lambda site, f: turn_reply().fits(site, f) or turn_started().fits(site, f)
    )
    frame = yield from wait_for(queue, named)
    yield from rename_id(
        queue, frame, turn_in(queue.site, frame).id, "0199aaaa-0000-7000-8000-000000000002"
    )


def gave_up(site: FaultSite, frame: Frame) -> bool:
    """Return whether a turn met an error that is not retried."""
    return any(obj(error.params).get("willRetry") is False for error in turn_in(site, frame).errors)


def completed_turn(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return the object of a completed turn."""
    return {"id": turn_in(site, frame).id, "items": [], "status": "completed", "error": None}


def has_an_error(_: FaultSite, frame: Frame) -> bool:
    """Return whether the turn that ends has an error object."""
    return isinstance(dig(frame.params, "turn", "error"), dict)


def has_words(_: FaultSite, frame: Frame) -> bool:
    """Return whether the turn that ends has an error with a message."""
    return bool(text(dig(frame.params, "turn", "error", "message")))


FAULTS: tuple[Fault, ...] = (
    Fault(
        "turn-reply-says-completed",
        rule="turn.start-reply",
        on="plain-turn",
        reason="turn/start returns a turn that is inProgress.",
        change=first(turn_reply(), edit("result", "turn", "status", to="completed")),
    ),
    Fault(
        "turn-reply-with-items",
        rule="turn.start-reply",
        on="plain-turn",
        reason="turn/start returns a turn with empty items.",
        change=first(turn_reply(), edit("result", "turn", "items", to=ITEMS)),
    ),
    Fault(
        "turn-not-announced",
        rule="turn.started-announced",
        on="plain-turn",
        reason="turn/start emits turn/started.",
        change=first(turn_started(), drop),
    ),
    Fault(
        "turn-announced-twice",
        rule="turn.started-once",
        on="steered",
        reason="A turn begins once; steering starts no new turn.",
        change=first(turn_started(), duplicate),
    ),
    Fault(
        "turn-interrupted-by-nobody",
        rule="turn.interrupted-when-asked",
        on="plain-turn",
        reason="turn/interrupt and cancel are the ways to the status interrupted.",
        change=first(turn_completed("completed"), edit(*STATUS, to="interrupted")),
    ),
    Fault(
        "turn-announced-after-an-item",
        rule="turn.started-first",
        on="plain-turn",
        reason="turn/started comes before the item notifications of its turn.",
        change=delay(turn_started(), "item/started of the turn", its_item_starts),
    ),
    Fault(
        "turn-ends-twice",
        rule="turn.completed-once",
        on="plain-turn",
        reason="A turn finishes once.",
        change=first(turn_completed(), duplicate),
    ),
    Fault(
        "turn-never-ends",
        rule="turn.completes",
        on="plain-turn",
        reason="Every turn ends with turn/completed.",
        change=first(turn_completed(), drop),
    ),
    Fault(
        "failed-turn-never-ends",
        rule="turn.completes",
        on="failed",
        reason="A turn that hits an error ends with turn/completed too; the error is not its end.",
        change=first(turn_completed("failed"), drop),
    ),
    Fault(
        "turn-ends-before-its-last-item",
        rule="turn.completed-last",
        on="plain-turn",
        reason="turn/completed comes after the item notifications of its turn.",
        change=delay(item_completed(), "turn/completed of the turn", its_turn_ends),
    ),
    Fault(
        "turn-id-given-twice",
        rule="turn.ids-unique",
        on="two-turns-read",
        reason="A turn's id is unique.",
        change=id_of_the_turn_before,
    ),
    Fault(
        "turn-id-of-another-shape",
        rule="turn.id-shape",
        on="plain-turn",
        reason="Turn ids have the shape turn_<n>.",
        change=turn_id_of_another_shape,
    ),
    Fault(
        "turn-ends-on-another-thread",
        rule="turn.known-thread",
        on="two-threads",
        reason="A turn belongs to the thread that it was started on.",
        change=first(turn_completed(), edit("params", "threadId", to="thr_987654321")),
    ),
    Fault(
        "delta-of-another-thread",
        rule="turn.known-thread",
        on="two-threads",
        reason="The items of a turn belong to its thread.",
        change=first(delta("agentMessage"), edit("params", "threadId", to="thr_987654321")),
    ),
    Fault(
        "turn-ends-with-items",
        rule="turn.items-empty",
        on="plain-turn",
        reason="items is empty in every notification.",
        change=first(turn_completed(), edit("params", "turn", "items", to=ITEMS)),
    ),
    Fault(
        "turn-starts-with-items",
        rule="turn.items-empty",
        on="plain-turn",
        reason="items is empty in every notification.",
        change=first(turn_started(), edit("params", "turn", "items", to=ITEMS)),
    ),
    Fault(
        "failed-turn-without-error",
        rule="turn.error-iff-failed",
        on="failed",
        reason="A failed turn's error is populated.",
        change=first(turn_completed("failed"), edit(*ERROR, to=None)),
    ),
    Fault(
        "completed-turn-with-error",
        rule="turn.error-iff-failed",
        on="retry",
        reason="error is populated only when the status is failed.",
        change=first(turn_completed("completed"), edit(*ERROR, to=TROUBLE)),
    ),
    Fault(
        "interrupted-turn-with-error",
        rule="turn.error-iff-failed",
        on="interrupted",
        reason="error is populated only when the status is failed; an interrupt is no failure.",
        change=first(turn_completed("interrupted"), edit(*ERROR, to=TROUBLE)),
    ),
    Fault(
        "turn-ends-in-progress",
        rule="turn.terminal-status",
        on="plain-turn",
        reason="A turn finishes as completed, interrupted or failed.",
        change=first(turn_completed("completed"), edit(*STATUS, to="inProgress")),
    ),
    Fault(
        "interrupted-turn-ends-completed",
        rule="turn.interrupt-ends-interrupted",
        on="interrupted",
        reason="After a successful turn/interrupt the turn ends interrupted.",
        change=first(
            turn_completed("interrupted").where(was_interrupted_first, "after turn/interrupt"),
            edit(*STATUS, to="completed"),
        ),
    ),
    Fault(
        "error-info-in-another-spelling",
        rule="turn-error.info-spelling",
        on="failed",
        reason="The values given of agentErrorInfo are in PascalCase.",
        change=first(
            turn_completed("failed").where(has_an_error, "with an error object"),
            edit(*ERROR, "agentErrorInfo", to="internalServerError"),
        ),
    ),
    Fault(
        "failed-turn-without-words",
        rule="error.terminal-carries-cause",
        on="failed",
        reason="The message of an error is for people to read.",
        change=first(
            turn_completed("failed").where(has_words, "with a message"),
            edit(*ERROR, "message", to=""),
        ),
    ),
    Fault(
        "given-up-turn-ends-completed",
        rule="error.terminal-carries-cause",
        on="failed",
        reason="A turn whose error is not retried has hit an error, so it failed.",
        change=first(
            turn_completed("failed").where(gave_up, "after an error that is not retried"),
            edit_by("params", "turn", value=completed_turn),
        ),
    ),
    Fault(
        "error-of-no-turn",
        rule="error.names-turn",
        on="retry",
        reason="The turnId of an error is that of the running turn.",
        change=first(error_of_a_turn(), edit("params", "turnId", to="turn_987654321")),
    ),
    Fault(
        "error-after-the-end",
        rule="error.names-turn",
        on="failed",
        reason="An error is one within the turn, so it comes while the turn runs.",
        change=delay(error_of_a_turn(), "turn/completed of the turn", its_turn_ends),
    ),
    Fault(
        "item-of-no-turn",
        rule="item.known-turn",
        on="plain-turn",
        reason="The turnId of an item notification is that of a turn that was announced.",
        change=throughout(
            item_started("agentMessage"), edit("params", "turnId", to="turn_987654321")
        ),
    ),
    Fault(
        "turn-announced-as-completed",
        rule="turn.started-carries-reply",
        on="plain-turn",
        reason="turn/started carries the turn as it begins, in progress.",
        change=first(turn_started(), edit(*STATUS, to="completed")),
    ),
)
