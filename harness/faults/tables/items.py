"""Faults of items and deltas."""

from itertools import pairwise

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.values import arr, dig, obj, text
from harness.trace.views import ItemView

SUMMARY = "item/reasoning/summaryTextDelta"
PART_ADDED = "item/reasoning/summaryPartAdded"
RAW = "item/reasoning/textDelta"


def _summaries(scene: Scene) -> list[Frame]:
    """The summary deltas of a reasoning item."""
    item = scene.item("reasoning", where=lambda i: 0 in _indexes(scene, i))
    return [frame for frame in scene.deltas(item) if frame.method == SUMMARY]


def _indexes(scene: Scene, item: ItemView) -> set[object]:
    """The parts of the summary that its deltas name."""
    deltas = [frame for frame in scene.about(item) if frame.method == SUMMARY]
    return {obj(frame.params).get("summaryIndex") for frame in deltas}


def _reply_with(scene: Scene, deltas: int) -> list[Frame]:
    """The deltas of an agentMessage that has at least so many."""
    return scene.deltas(scene.item("agentMessage", deltas=deltas))


@fault(
    "delta-before-its-item",
    rule="item.started-before-delta",
    on="plain-turn",
    reason="An item's deltas follow its item/started.",
)
def delta_first(scene: Scene) -> Trace:
    """item/started after the first delta."""
    item = scene.item(deltas=1)
    return op.move(scene.trace, item.started[0], after=scene.deltas(item)[0])


@fault(
    "item-never-started",
    rule="item.completed-after-started",
    on="plain-turn",
    reason="An item is started before it is completed.",
)
def never_started(scene: Scene) -> Trace:
    """item/completed alone."""
    return op.drop(scene.trace, scene.item("userMessage", "agentMessage").started[0])


@fault(
    "item-completed-twice",
    rule="item.completed-once",
    on="plain-turn",
    reason="item/completed carries the final item, so there is one.",
)
def completed_twice(scene: Scene) -> Trace:
    """item/completed again."""
    return op.duplicate(scene.trace, scene.item().completed[0])


@fault(
    "item-never-completed",
    rule="item.completes",
    on="plain-turn",
    reason="A started item is completed.",
)
def never_completed(scene: Scene) -> Trace:
    """item/started alone, in a turn that completed."""
    item = scene.item(where=lambda i: i.turn.status == "completed")
    return op.drop(scene.trace, item.completed[0])


@fault(
    "item-cut-off-and-left-open",
    rule="item.completes",
    on="interrupted",
    reason="The lifecycle ends with item/completed; that it also does after an interrupt is our "
    "reading, so this is recorded only.",
)
def cut_off(scene: Scene) -> Trace:
    """The item that an interrupt or a failure cut off is not completed."""
    item = scene.item(where=lambda i: i.turn.status in ("interrupted", "failed"))
    return op.drop(scene.trace, item.completed[0])


@fault(
    "item-changes-its-type",
    rule="item.same-type",
    on="plain-turn",
    reason="The final item is the item that was started.",
)
def other_type(scene: Scene) -> Trace:
    """item/completed of another type."""
    item = scene.item("agentMessage")
    path = ("params", "item", "type")
    return op.edit(scene.trace, item.completed[0], path, "contextCompaction")


@fault(
    "item-id-used-again",
    rule="item.ids-not-reused",
    on="many-deltas",
    reason="Deltas are joined by itemId, so one id is one item.",
)
def id_again(scene: Scene) -> Trace:
    """The second message of a turn has the id of the first."""

    def later(item: ItemView, first: ItemView) -> bool:
        return item.turn is first.turn and item.started[0].seq > first.completed[0].seq

    first = scene.item("agentMessage")
    second = scene.item("agentMessage", where=lambda item: later(item, first))
    return op.rename(scene.trace, scene.about(second), second.id, first.id)


@fault(
    "delta-lost",
    rule="delta.rebuilds-reply",
    on="plain-turn",
    reason="The deltas of an agentMessage rebuild the reply.",
)
def delta_lost(scene: Scene) -> Trace:
    """One delta is missing."""
    return op.drop(scene.trace, _reply_with(scene, 2)[0])


@fault(
    "delta-repeated",
    rule="delta.rebuilds-reply",
    on="many-deltas",
    reason="The deltas of an agentMessage rebuild the reply.",
)
def delta_repeated(scene: Scene) -> Trace:
    """One delta comes twice."""
    return op.duplicate(scene.trace, _reply_with(scene, 1)[-1])


@fault(
    "deltas-out-of-order",
    rule="delta.rebuilds-reply",
    on="many-deltas",
    reason="The deltas of an agentMessage rebuild the reply, in the order in which they come.",
)
def deltas_swapped(scene: Scene) -> Trace:
    """Two neighbours in each other's place."""
    deltas = _reply_with(scene, 2)
    for one, other in pairwise(deltas):
        a, b = text(obj(one.params)["delta"]), text(obj(other.params)["delta"])
        if a + b != b + a:
            return op.swap(scene.trace, one, other)
    raise NotApplied("no two neighbours that differ")


@fault(
    "reply-longer-than-its-deltas",
    rule="delta.rebuilds-reply",
    on="plain-turn",
    reason="The deltas of an agentMessage rebuild the reply.",
)
def reply_longer(scene: Scene) -> Trace:
    """The final text has an end that was never streamed."""
    item = scene.item("agentMessage", deltas=1)
    final = text(dig(item.completed[0].params, "item", "text"))
    return op.edit(scene.trace, item.completed[0], ("params", "item", "text"), final + "!")


@fault(
    "summary-delta-lost",
    rule="delta.reasoning-summary",
    on="reasoning",
    reason="The summary of a reasoning item is what was streamed of it.",
)
def summary_lost(scene: Scene) -> Trace:
    """One of several deltas of a summary part is missing."""
    deltas = _summaries(scene)
    first = [f for f in deltas if obj(f.params).get("summaryIndex") == 0]
    if len(first) < 2:
        raise NotApplied("a part in one delta")
    return op.drop(scene.trace, first[-1])


@fault(
    "summary-delta-of-another-part",
    rule="delta.reasoning-summary",
    on="reasoning",
    reason="summaryIndex says which part of the summary a delta belongs to.",
)
def summary_elsewhere(scene: Scene) -> Trace:
    """A delta of the last part is booked to the first."""
    path = ("params", "summaryIndex")
    return op.edit(scene.trace, _summaries(scene)[-1], path, 0)


@fault(
    "delta-of-another-kind",
    rule="delta.kind-matches-item",
    on="plain-turn",
    reason="Each kind of item has its own deltas.",
)
def other_kind(scene: Scene) -> Trace:
    """A plan delta for a message."""
    deltas = _reply_with(scene, 1)
    return op.edit(scene.trace, deltas[0], ("method",), "item/plan/delta")


@fault(
    "user-message-changed",
    rule="user-message.echo",
    on="plain-turn",
    reason="The userMessage shows the input that was sent.",
)
def echo_changed(scene: Scene) -> Trace:
    """Another text than the user's."""
    item = scene.item("userMessage")
    content = arr(dig(item.completed[0].params, "item", "content"))
    for index, part in enumerate(content):
        if obj(part).get("type") == "text":
            path = ("params", "item", "content", index, "text")
            return op.edit(scene.trace, item.completed[0], path, "something else")
    raise NotApplied("no text in the userMessage")


@fault(
    "raw-delta-lost",
    rule="delta.reasoning-content",
    on="reasoning",
    reason="The raw deltas of one index are that block of the completed item's content.",
)
def raw_lost(scene: Scene) -> Trace:
    """One raw delta is missing, others are there."""

    def raw_deltas(item: ItemView) -> list[Frame]:
        return [frame for frame in scene.deltas(item) if frame.method == RAW]

    item = scene.item("reasoning", where=lambda i: len(raw_deltas(i)) > 1)
    return op.drop(scene.trace, raw_deltas(item)[0])


@fault(
    "summary-section-without-boundary",
    rule="delta.summary-part-announced",
    on="reasoning",
    reason="item/reasoning/summaryPartAdded tells of each boundary of sections.",
)
def no_boundary(scene: Scene) -> Trace:
    """No boundary at all between sections that there are."""
    item = scene.item("reasoning", where=lambda i: {0, 1} <= _indexes(scene, i))
    return op.drop(scene.trace, *(f for f in scene.about(item) if f.method == PART_ADDED))
