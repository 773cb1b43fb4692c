"""State of a turn when the client acts before its end."""

from typing import Any, Final

from harness.protocol.values import dig, text
from harness.scenario.from_trace.answers import was_answered
from harness.scenario.from_trace.story import TOOL_TYPES, Story, Turn
from harness.trace.frame import Direction, Kind

# Messages to wait for before an action during a turn: every server sends them.
_METHODS_WAITED_FOR: Final = ("item/started", "item/completed", "error")


def is_server_busy(story: Story, turn: Turn, seq: int) -> bool:
    """Return whether a tool ran or a server request was open at `seq`, so no model stream was."""
    for product in turn.products:
        if (
            product.type in TOOL_TYPES
            and product.begins < seq
            and (product.ends is None or product.ends > seq)
        ):
            return True
    return any(
        frame.kind is Kind.REQUEST
        and frame.direction is Direction.FROM_TARGET
        and frame.seq < seq
        and text(dig(frame.params, "threadId")) == turn.thread
        and not was_answered(story, frame, seq)
        for frame in story.frames
    )


def was_interrupted(story: Story, turn: Turn, seq: int) -> bool:
    """Return whether the client requested to interrupt the turn before `seq`."""
    return any(
        frame.method == "turn/interrupt"
        and frame.direction is Direction.TO_TARGET
        and frame.seq < seq
        and text(dig(frame.params, "turnId")) == turn.id
        for frame in story.frames
    )


def last_message_of_turn(
    story: Story, turn: Turn, after: int, before: int
) -> dict[str, Any] | None:
    """Return the `wait` for the last message about a turn between two frames; None if none fits."""
    for frame in reversed(story.frames):
        if not after < frame.seq < before or frame.direction is Direction.TO_TARGET:
            continue
        if text(dig(frame.params, "turnId")) != turn.id:
            continue
        if frame.kind is Kind.REQUEST:
            return {"request": frame.method}
        kind = text(dig(frame.params, "item", "type"))
        if frame.method in _METHODS_WAITED_FOR and kind != "userMessage":
            where = {"where": {"item.type": kind}} if kind else {}
            return {"notification": frame.method, **where}
    return None
