"""Faults of what items say of their work: status, output, MCP tool calls."""

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.spec.machines import ITEM_STATUS
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.values import dig, obj, text
from harness.trace.views import ItemView

OUTPUT = "item/commandExecution/outputDelta"
PROGRESS = "item/mcpToolCall/progress"


def _mcp(scene: Scene, status: str) -> ItemView:
    """An mcpToolCall that ended with a status."""
    return scene.item("mcpToolCall", where=lambda item: _ended(item) == status)


def _ended(item: ItemView) -> object:
    return dig(item.completed[0].params, "item", "status")


def _written(scene: Scene) -> tuple[ItemView, list[Frame]]:
    """A command with several output deltas and all of its output, and those deltas."""

    def outputs(item: ItemView) -> list[Frame]:
        return [frame for frame in scene.deltas(item) if frame.method == OUTPUT]

    def kept(item: ItemView) -> bool:
        return isinstance(dig(item.completed[0].params, "item", "aggregatedOutput"), str)

    item = scene.item("commandExecution", where=lambda i: len(outputs(i)) > 1 and kept(i))
    return item, outputs(item)


@fault(
    "delta-after-its-item",
    rule="item.completed-last",
    on="plain-turn",
    reason="Deltas come between an item's start and its completion.",
)
def delta_late(scene: Scene) -> Trace:
    """The last delta after item/completed."""
    item = scene.item(deltas=1)
    return op.move(scene.trace, scene.deltas(item)[-1], after=item.completed[0])


@fault(
    "item-begins-with-an-outcome",
    rule="item.begins-in-progress",
    on="commands",
    reason="item/started comes when the work begins, so that it has no outcome yet.",
)
def begins_completed(scene: Scene) -> Trace:
    """item/started with status completed."""
    item = scene.item(*ITEM_STATUS)
    return op.edit(scene.trace, item.started[0], ("params", "item", "status"), "completed")


@fault(
    "item-ends-in-progress",
    rule="item.final-status",
    on="commands",
    reason="item/completed carries the final item, so that its status is an outcome.",
)
def ends_in_progress(scene: Scene) -> Trace:
    """item/completed with status inProgress."""
    item = scene.item(*ITEM_STATUS)
    return op.edit(scene.trace, item.completed[0], ("params", "item", "status"), "inProgress")


@fault(
    "output-delta-lost",
    rule="delta.command-output",
    on="commands",
    reason="What is streamed of a command's output and what is kept of it are one output.",
)
def output_lost(scene: Scene) -> Trace:
    """One of several output deltas is missing."""
    return op.drop(scene.trace, _written(scene)[1][0])


@fault(
    "output-not-kept",
    rule="item.command-output",
    on="commands",
    reason="aggregatedOutput has what the command wrote to both streams.",
)
def output_not_kept(scene: Scene) -> Trace:
    """Nothing is streamed, and what the first delta had is not in the item either."""
    item, outputs = _written(scene)
    rest = "".join(text(obj(frame.params).get("delta")) for frame in outputs[1:])
    path = ("params", "item", "aggregatedOutput")
    return op.drop(op.edit(scene.trace, item.completed[0], path, rest), *outputs)


@fault(
    "one-stream-not-streamed",
    rule="delta.both-streams",
    on="commands",
    reason="Standard output and standard error of a command are both streamed.",
)
def one_stream(scene: Scene) -> Trace:
    """Only the first delta is sent, and the item has no output."""
    item, outputs = _written(scene)
    path = ("params", "item", "aggregatedOutput")
    return op.drop(op.remove(scene.trace, item.completed[0], path), *outputs[1:])


@fault(
    "mcp-call-without-result",
    rule="mcp.result-when-completed",
    on="mcp-calls",
    reason="A completed tool call has its result.",
)
def no_result(scene: Scene) -> Trace:
    """completed, and result null."""
    frame = _mcp(scene, "completed").completed[0]
    return op.edit(scene.trace, frame, ("params", "item", "result"), None)


@fault(
    "mcp-call-without-error",
    rule="mcp.error-when-failed",
    on="mcp-calls",
    reason="A failed tool call has its error.",
)
def no_error(scene: Scene) -> Trace:
    """failed, and no error."""
    frame = _mcp(scene, "failed").completed[0]
    return op.edit(scene.trace, frame, ("params", "item", "error"), None)


@fault(
    "mcp-progress-before-any-call",
    rule="mcp.progress-of-call",
    on="mcp-calls",
    reason="Progress of a call that was not begun is the progress of nothing.",
)
def progress_early(scene: Scene) -> Trace:
    """Progress right after the turn began."""
    progress = scene.notified(PROGRESS)[0]
    return op.move(scene.trace, progress, after=scene.turn().started[0])


@fault(
    "mcp-progress-after-the-call",
    rule="mcp.progress-of-call",
    on="mcp-calls",
    reason="A call that is completed makes no progress.",
)
def progress_late(scene: Scene) -> Trace:
    """Progress after the last call of the turn was completed."""
    progress = scene.notified(PROGRESS)[0]
    ended = [
        done.seq
        for turn in scene.conversation.turns.values()
        for item in turn.items.values()
        if item.type == "mcpToolCall"
        for done in item.completed
    ]
    if not ended:
        raise NotApplied("no mcpToolCall was completed")
    return op.move(scene.trace, progress, after=scene.trace.frames[max(ended)])
