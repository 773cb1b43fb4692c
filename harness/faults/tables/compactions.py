"""Faults of a compaction that the client asked for."""

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.trace import Trace
from harness.trace.values import dig, obj

COMPACT = "thread/compact/start"


def _answer(scene: Scene) -> Frame:
    return scene.answers(COMPACT)[0]


def _after(scene: Scene) -> list[Frame]:
    """What is told between the answer and the client's next message."""
    answer = _answer(scene)
    found: list[Frame] = []
    for frame in scene.trace.frames:
        if frame.seq <= answer.seq:
            continue
        if frame.origin is not Origin.TARGET:
            break
        if frame.kind is Kind.NOTIFICATION:
            found.append(frame)
    if not found:
        raise NotApplied("nothing is told of a compaction")
    return found


@fault(
    "compact-answered-with-members",
    rule="compact.reply-empty",
    on="compacted",
    reason="The result of thread/compact/start is {}; more than that is recorded.",
)
def compact_filled(scene: Scene) -> Trace:
    """A result with something in it."""
    turn_id = obj(_after(scene)[0].params).get("turnId")
    return op.edit(scene.trace, _answer(scene), ("result", "turnId"), turn_id)


@fault(
    "compact-answered-with-null",
    rule="compact.reply-empty",
    on="compacted",
    reason="The result of thread/compact/start is {}, not null.",
)
def compact_null(scene: Scene) -> Trace:
    """null in place of the empty object."""
    return op.edit(scene.trace, _answer(scene), ("result",), None)


@fault(
    "compaction-in-silence",
    rule="compact.told",
    on="compacted",
    reason="The progress of compaction arrives by notifications.",
)
def compaction_silent(scene: Scene) -> Trace:
    """The answer, and then nothing at all of the thread."""
    answer = _answer(scene)
    thread_id = obj(scene.request_of(answer).params).get("threadId")
    later = [
        frame
        for frame in scene.trace.frames
        if frame.seq > answer.seq and obj(frame.params).get("threadId") == thread_id
    ]
    told = [frame for frame in later if frame.origin is Origin.TARGET]
    if not told or len(told) != len(later):
        raise NotApplied("no compaction at the end of a conversation")
    return op.drop(scene.trace, *told)


@fault(
    "compaction-without-item",
    rule="compact.item-emitted",
    on="compacted",
    reason="The contextCompaction item is emitted when the history is compacted.",
)
def compaction_bare(scene: Scene) -> Trace:
    """The turn of a compaction without its item."""
    items = [
        frame for frame in _after(scene) if dig(frame.params, "item", "type") == "contextCompaction"
    ]
    if not items:
        raise NotApplied("no contextCompaction item")
    return op.drop(scene.trace, *items)
