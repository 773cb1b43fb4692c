"""Faults of turns: announcements, order, turn objects, errors."""

from typing import Any

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.values import dig, obj, text

TROUBLE = {"message": "the model cannot be reached", "agentErrorInfo": "Other"}
ITEMS = [{"type": "contextCompaction", "id": "left-over"}]


def _reply(scene: Scene) -> Frame:
    """A reply to turn/start whose turn has its whole life in the trace."""
    reply = scene.turn().reply
    if reply is None:
        raise NotApplied("no reply")
    return reply


@fault(
    "turn-reply-says-completed",
    rule="turn.start-reply",
    on="plain-turn",
    reason="turn/start returns a turn that is inProgress.",
)
def reply_completed(scene: Scene) -> Trace:
    """A reply to turn/start with status completed."""
    return op.edit(scene.trace, _reply(scene), ("result", "turn", "status"), "completed")


@fault(
    "turn-reply-with-items",
    rule="turn.start-reply",
    on="plain-turn",
    reason="turn/start returns a turn with empty items.",
)
def reply_items(scene: Scene) -> Trace:
    """A reply to turn/start with an item."""
    return op.edit(scene.trace, _reply(scene), ("result", "turn", "items"), ITEMS)


@fault(
    "turn-not-announced",
    rule="turn.started-announced",
    on="plain-turn",
    reason="turn/start emits turn/started.",
)
def unannounced(scene: Scene) -> Trace:
    """No turn/started."""
    return op.drop(scene.trace, *scene.turn().started)


@fault(
    "turn-announced-twice",
    rule="turn.started-once",
    on="steered",
    reason="A turn begins once; steering starts no new turn.",
)
def announced_twice(scene: Scene) -> Trace:
    """turn/started again."""
    return op.duplicate(scene.trace, scene.turn().started[0])


@fault(
    "turn-interrupted-by-nobody",
    rule="turn.interrupted-when-asked",
    on="plain-turn",
    reason="turn/interrupt and cancel are the ways to the status interrupted.",
)
def interrupted_by_nobody(scene: Scene) -> Trace:
    """A turn that would have been completed ends as interrupted."""
    end = scene.turn("completed").completed[0]
    return op.edit(scene.trace, end, ("params", "turn", "status"), "interrupted")


@fault(
    "turn-announced-after-an-item",
    rule="turn.started-first",
    on="plain-turn",
    reason="turn/started comes before the item notifications of its turn.",
)
def announced_late(scene: Scene) -> Trace:
    """An item is started before its turn."""
    item = scene.item(where=lambda i: i.started[0].seq > i.turn.started[0].seq)
    return op.move(scene.trace, item.turn.started[0], after=item.started[0])


@fault(
    "turn-ends-twice",
    rule="turn.completed-once",
    on="plain-turn",
    reason="A turn finishes once.",
)
def ends_twice(scene: Scene) -> Trace:
    """turn/completed again."""
    return op.duplicate(scene.trace, scene.turn().completed[0])


@fault(
    "turn-never-ends",
    rule="turn.completes",
    on="plain-turn",
    reason="Every turn ends with turn/completed.",
)
def never_ends(scene: Scene) -> Trace:
    """No turn/completed."""
    return op.drop(scene.trace, scene.turn().completed[0])


@fault(
    "failed-turn-never-ends",
    rule="turn.completes",
    on="failed",
    reason="A turn that hits an error ends with turn/completed too; the error is not its end.",
)
def failure_never_ends(scene: Scene) -> Trace:
    """The error notification in place of the end."""
    return op.drop(scene.trace, scene.turn("failed").completed[0])


@fault(
    "turn-ends-before-its-last-item",
    rule="turn.completed-last",
    on="plain-turn",
    reason="turn/completed comes after the item notifications of its turn.",
)
def ends_early(scene: Scene) -> Trace:
    """An item is completed after its turn."""
    item = scene.item(where=lambda i: i.completed[0].seq < i.turn.completed[0].seq)
    return op.move(scene.trace, item.completed[0], after=item.turn.completed[0])


@fault(
    "turn-id-given-twice",
    rule="turn.ids-unique",
    on="two-turns-read",
    reason="A turn's id is unique.",
)
def same_id(scene: Scene) -> Trace:
    """The second turn gets the id of the first, which has ended."""
    answers = scene.answers("turn/start")
    first = scene.turn()
    for answer in answers:
        request = scene.request_of(answer)
        if request.seq > first.completed[0].seq:
            later = [frame for frame in scene.trace.frames if frame.seq >= answer.seq]
            second = text(dig(answer.result, "turn", "id"))
            return op.rename(scene.trace, later, second, first.id)
    raise NotApplied("one turn only")


@fault(
    "turn-id-of-another-shape",
    rule="turn.id-shape",
    on="plain-turn",
    reason="Turn ids have the shape turn_<n>.",
)
def turn_shape(scene: Scene) -> Trace:
    """A UUID everywhere in place of the id."""
    turn = scene.turn()
    uuid = "0199aaaa-0000-7000-8000-000000000002"
    return op.rename(scene.trace, scene.trace.frames, turn.id, uuid)


@fault(
    "turn-ends-on-another-thread",
    rule="turn.known-thread",
    on="two-threads",
    reason="A turn belongs to the thread that it was started on.",
)
def other_thread(scene: Scene) -> Trace:
    """turn/completed names another thread."""
    frame = scene.turn().completed[0]
    return op.edit(scene.trace, frame, ("params", "threadId"), "thr_987654321")


@fault(
    "delta-of-another-thread",
    rule="turn.known-thread",
    on="two-threads",
    reason="The items of a turn belong to its thread.",
)
def delta_elsewhere(scene: Scene) -> Trace:
    """A delta names another thread."""
    delta = scene.deltas(scene.item("agentMessage", deltas=1))[0]
    return op.edit(scene.trace, delta, ("params", "threadId"), "thr_987654321")


@fault(
    "turn-ends-with-items",
    rule="turn.items-empty",
    on="plain-turn",
    reason="items is empty in every notification.",
)
def end_items(scene: Scene) -> Trace:
    """turn/completed carries an item."""
    return op.edit(scene.trace, scene.turn().completed[0], ("params", "turn", "items"), ITEMS)


@fault(
    "turn-starts-with-items",
    rule="turn.items-empty",
    on="plain-turn",
    reason="items is empty in every notification.",
)
def start_items(scene: Scene) -> Trace:
    """turn/started carries an item."""
    return op.edit(scene.trace, scene.turn().started[0], ("params", "turn", "items"), ITEMS)


@fault(
    "failed-turn-without-error",
    rule="turn.error-iff-failed",
    on="failed",
    reason="A failed turn's error is populated.",
)
def no_error(scene: Scene) -> Trace:
    """failed, and no error."""
    frame = scene.turn("failed").completed[0]
    return op.edit(scene.trace, frame, ("params", "turn", "error"), None)


@fault(
    "completed-turn-with-error",
    rule="turn.error-iff-failed",
    on="retry",
    reason="error is populated only when the status is failed.",
)
def error_kept(scene: Scene) -> Trace:
    """completed, and an error."""
    frame = scene.turn("completed").completed[0]
    return op.edit(scene.trace, frame, ("params", "turn", "error"), TROUBLE)


@fault(
    "interrupted-turn-with-error",
    rule="turn.error-iff-failed",
    on="interrupted",
    reason="error is populated only when the status is failed; an interrupt is no failure.",
)
def error_of_interrupt(scene: Scene) -> Trace:
    """interrupted, and an error."""
    frame = scene.turn("interrupted").completed[0]
    return op.edit(scene.trace, frame, ("params", "turn", "error"), TROUBLE)


@fault(
    "turn-ends-in-progress",
    rule="turn.terminal-status",
    on="plain-turn",
    reason="A turn finishes as completed, interrupted or failed.",
)
def in_progress(scene: Scene) -> Trace:
    """turn/completed with status inProgress."""
    frame = scene.turn("completed").completed[0]
    return op.edit(scene.trace, frame, ("params", "turn", "status"), "inProgress")


@fault(
    "interrupted-turn-ends-completed",
    rule="turn.interrupt-ends-interrupted",
    on="interrupted",
    reason="After a successful turn/interrupt the turn ends interrupted.",
)
def completed_anyway(scene: Scene) -> Trace:
    """A status as if nothing had been interrupted."""
    answer = scene.answers("turn/interrupt")[0]
    turn_id = text(obj(scene.request_of(answer).params).get("turnId"))
    turn = scene.turn("interrupted", where=lambda t: t.id == turn_id)
    if turn.completed[0].seq < answer.seq:
        raise NotApplied("the turn ends before the answer")
    path = ("params", "turn", "status")
    return op.edit(scene.trace, turn.completed[0], path, "completed")


@fault(
    "error-info-in-another-spelling",
    rule="turn-error.info-spelling",
    on="failed",
    reason="The values given of agentErrorInfo are in PascalCase.",
)
def camel_case(scene: Scene) -> Trace:
    """A small first letter."""
    frame = scene.turn("failed").completed[0]
    path = ("params", "turn", "error", "agentErrorInfo")
    if not isinstance(dig(frame.params, "turn", "error"), dict):
        raise NotApplied("no error object")
    return op.edit(scene.trace, frame, path, "internalServerError")


@fault(
    "failed-turn-without-words",
    rule="error.terminal-carries-cause",
    on="failed",
    reason="The message of an error is for people to read.",
)
def no_words(scene: Scene) -> Trace:
    """An empty message."""
    frame = scene.turn("failed").completed[0]
    if not text(dig(frame.params, "turn", "error", "message")):
        raise NotApplied("no message")
    return op.edit(scene.trace, frame, ("params", "turn", "error", "message"), "")


@fault(
    "given-up-turn-ends-completed",
    rule="error.terminal-carries-cause",
    on="failed",
    reason="A turn whose error is not retried has hit an error, so it failed.",
)
def completed_after_error(scene: Scene) -> Trace:
    """An error that is not retried, and a turn that completed."""
    turn = scene.turn(
        "failed",
        where=lambda t: any(obj(e.params).get("willRetry") is False for e in t.errors),
    )
    ended: dict[str, Any] = {"id": turn.id, "items": [], "status": "completed", "error": None}
    return op.edit(scene.trace, turn.completed[0], ("params", "turn"), ended)


@fault(
    "error-of-no-turn",
    rule="error.names-turn",
    on="retry",
    reason="The turnId of an error is that of the running turn.",
)
def error_of_no_turn(scene: Scene) -> Trace:
    """An error with the id of no turn."""
    turn = scene.turn(where=lambda t: bool(t.errors))
    return op.edit(scene.trace, turn.errors[0], ("params", "turnId"), "turn_987654321")


@fault(
    "error-after-the-end",
    rule="error.names-turn",
    on="failed",
    reason="An error is one within the turn, so it comes while the turn runs.",
)
def error_late(scene: Scene) -> Trace:
    """The error after turn/completed."""
    turn = scene.turn(where=lambda t: bool(t.errors))
    return op.move(scene.trace, turn.errors[0], after=turn.completed[0])


@fault(
    "item-of-no-turn",
    rule="item.known-turn",
    on="plain-turn",
    reason="The turnId of an item notification is that of a turn that was announced.",
)
def item_of_no_turn(scene: Scene) -> Trace:
    """A whole message under the id of no turn."""
    about = scene.about(scene.item("agentMessage"))
    return op.change(scene.trace, about, lambda m: _under(m, "turn_987654321"))


def _under(message: dict[str, Any], turn_id: str) -> dict[str, Any]:
    return {**message, "params": {**message["params"], "turnId": turn_id}}


@fault(
    "turn-announced-as-completed",
    rule="turn.started-carries-reply",
    on="plain-turn",
    reason="turn/started carries the turn as it begins, in progress.",
)
def announced_completed(scene: Scene) -> Trace:
    """turn/started with status completed."""
    path = ("params", "turn", "status")
    return op.edit(scene.trace, scene.turn().started[0], path, "completed")
