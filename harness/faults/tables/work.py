"""Faults of the work in items: status, output, MCP tool calls."""

from harness.faults.base import Fault
from harness.faults.changes import delay, first
from harness.faults.item_selectors import (
    delta,
    delta_before_another,
    item_completed,
    item_in,
    item_started,
    last_delta,
)
from harness.faults.operators import drop, edit, put
from harness.faults.queue import FrameQueue
from harness.faults.selectors import Selector, Verdict, notification
from harness.faults.site import FaultSite
from harness.protocol.spec.machines import ITEM_STATUS
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame

OUTPUT = "item/commandExecution/outputDelta"
PROGRESS = "item/mcpToolCall/progress"
KEPT = ("params", "item", "aggregatedOutput")


def behind_its_item(queue: FrameQueue, frame: Frame) -> None:
    """Move a delta right behind the item/completed of its item."""
    queue.move_behind(frame, item_in(queue.site, frame).completions[0])


def mcp_call_ended(status: str) -> Selector:
    """Select the end of an mcpToolCall with a status."""
    return item_completed("mcpToolCall").where(
        lambda _, frame: dig(frame.params, "item", "status") == status, status
    )


def first_of_a_kept_output(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether an output delta is the first of several of a command with aggregatedOutput.

    None until the command ends.
    """
    item = item_in(site, frame)
    outputs = site.deltas(item, OUTPUT)
    if outputs[0] is not frame:
        return False
    if not item.completions:
        return None
    aggregated = dig(item.completions[0].params, "item", "aggregatedOutput")
    return len(outputs) > 1 and isinstance(aggregated, str)


def whole_output() -> Selector:
    """Select the first of several output deltas of a command that ended with aggregatedOutput."""
    return delta("commandExecution", method=OUTPUT).where(
        first_of_a_kept_output, "of several, whose output is kept"
    )


def output_neither_streamed_nor_kept(queue: FrameQueue, frame: Frame) -> None:
    """Drop all output deltas, and the output of the first one from the item."""
    item = item_in(queue.site, frame)
    outputs = queue.site.deltas(item, OUTPUT)
    rest = "".join(text(obj(output.params).get("delta")) for output in outputs[1:])
    queue.alter(item.completions[0], lambda message: put(message, KEPT, rest))
    for output in outputs:
        queue.drop(output)


def one_stream_only(queue: FrameQueue, frame: Frame) -> None:
    """Stream only the first line, and remove the output from the item."""
    item = item_in(queue.site, frame)
    first_line, *_ = text(obj(frame.params).get("delta")).splitlines(keepends=True)
    queue.alter(frame, lambda message: put(message, ("params", "delta"), first_line))
    for other in queue.site.deltas(item, OUTPUT)[1:]:
        queue.drop(other)
    queue.alter(item.completions[0], without_output)


def both_streams() -> Selector:
    """Select the first output delta of a command that writes to both streams, once it has ended."""

    def fits(site: FaultSite, frame: Frame) -> Verdict:
        item = item_in(site, frame)
        if site.deltas(item, OUTPUT)[0] is not frame:
            return False
        if not item.completions:
            return None
        shows = obj(dig(item.completions[0].params, "item"))
        return ">&2" in text(shows.get("command")) and "aggregatedOutput" in shows

    return delta("commandExecution", method=OUTPUT).where(fits, "of a command with both streams")


def without_output(message: dict[str, dict[str, dict[str, object]]]) -> object:
    """Return an item/completed without aggregatedOutput."""
    message["params"]["item"].pop("aggregatedOutput")
    return message


def begun_with_progress(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether progress of an MCP tool call follows item/started; None until a frame."""
    following = site.next_from_target(frame)
    return None if following is None else following.method == PROGRESS


def progress_first(queue: FrameQueue, frame: Frame) -> None:
    """Move the progress notification after item/started before it."""
    following = queue.site.next_from_target(frame)
    if following is not None:
        queue.move_before(following, frame)


def no_call_runs(site: FaultSite, _: Frame, now: Frame) -> bool:
    """Return whether `now` ends the last running mcpToolCall of its turn."""
    ended = site.item_of(now)
    if ended is None or ended.type != "mcpToolCall" or now.method != "item/completed":
        return False
    return not any(item.is_open for item in ended.turn.items.values() if item.type == ended.type)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "delta-after-its-item",
        rule="item.completed-last",
        on="plain-turn",
        reason="Deltas come between an item's start and its completion.",
        change=first(last_delta(), behind_its_item),
    ),
    Fault(
        "item-begins-with-an-outcome",
        rule="item.begins-in-progress",
        on="commands",
        reason="item/started comes when the work begins, so that it has no outcome yet.",
        change=first(item_started(*ITEM_STATUS), edit("params", "item", "status", to="completed")),
    ),
    Fault(
        "item-ends-in-progress",
        rule="item.final-status",
        on="commands",
        reason="item/completed carries the final item, so that its status is an outcome.",
        change=first(
            item_completed(*ITEM_STATUS), edit("params", "item", "status", to="inProgress")
        ),
    ),
    Fault(
        "output-delta-lost",
        rule="delta.command-output",
        on="commands",
        reason="What is streamed of a command's output and what is kept of it are one output.",
        change=first(delta_before_another("commandExecution", method=OUTPUT), drop),
    ),
    Fault(
        "output-not-kept",
        rule="item.command-output",
        on="commands",
        reason="aggregatedOutput has what the command wrote to both streams.",
        change=first(whole_output(), output_neither_streamed_nor_kept),
    ),
    Fault(
        "one-stream-not-streamed",
        rule="delta.both-streams",
        on="commands",
        reason="Standard output and standard error of a command are both streamed.",
        change=first(both_streams(), one_stream_only),
    ),
    Fault(
        "mcp-call-without-result",
        rule="mcp.result-when-completed",
        on="mcp-calls",
        reason="A completed tool call has its result.",
        change=first(mcp_call_ended("completed"), edit("params", "item", "result", to=None)),
    ),
    Fault(
        "mcp-call-without-error",
        rule="mcp.error-when-failed",
        on="mcp-calls",
        reason="A failed tool call has its error.",
        change=first(mcp_call_ended("failed"), edit("params", "item", "error", to=None)),
    ),
    Fault(
        "mcp-call-begins-with-a-result",
        rule="mcp.outcome-fits-status",
        on="mcp-calls",
        reason="A call in progress has no result yet.",
        change=first(
            item_started("mcpToolCall"), edit("params", "item", "result", to={"content": [1]})
        ),
    ),
    Fault(
        "mcp-call-completed-with-an-error",
        rule="mcp.outcome-fits-status",
        on="mcp-calls",
        reason="The error is that of a call that failed.",
        change=first(
            mcp_call_ended("completed"), edit("params", "item", "error", to={"message": "no"})
        ),
    ),
    Fault(
        "mcp-call-with-other-arguments",
        rule="item.same-work",
        on="mcp-calls",
        reason="A call has the arguments that it began with to its end.",
        change=first(
            mcp_call_ended("completed"), edit("params", "item", "arguments", to={"a": 0, "b": 0})
        ),
    ),
    Fault(
        "failed-call-with-success",
        rule="dynamic.success-fits-status",
        on="dynamic-calls",
        reason="A call that failed had no success.",
        change=first(
            item_completed("dynamicToolCall").where(
                lambda _, frame: dig(frame.params, "item", "status") == "failed", "failed"
            ),
            edit("params", "item", "success", to=True),
        ),
    ),
    Fault(
        "mcp-progress-before-any-call",
        rule="mcp.progress-of-call",
        on="mcp-calls",
        reason="Progress of a call that was not begun is the progress of nothing.",
        change=first(
            item_started("mcpToolCall").where(begun_with_progress, "with progress"), progress_first
        ),
    ),
    Fault(
        "mcp-progress-after-the-call",
        rule="mcp.progress-of-call",
        on="mcp-calls",
        reason="A call that is completed makes no progress.",
        change=delay(notification(PROGRESS), "end of the last running mcpToolCall", no_call_runs),
    ),
)
