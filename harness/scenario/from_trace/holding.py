"""Acts of a client in the middle of a turn: what the server did and told just before."""

from typing import Any, Final

from harness.protocol.values import dig, text
from harness.scenario.from_trace.answers import was_answered
from harness.scenario.from_trace.story import TOOLS, Story, Turn
from harness.trace.frame import Direction, Kind

# What is waited for where the client acted in the middle of a turn: every server tells it.
_TOLD: Final = ("item/started", "item/completed", "error")


def is_busy(story: Story, turn: Turn, seq: int) -> bool:
    """Return whether the server had something to do, or asked something: no model's stream then."""
    for made in turn.made:
        if made.type in TOOLS and made.begins < seq and (made.ends is None or made.ends > seq):
            return True
    return any(
        one.kind is Kind.REQUEST
        and one.direction is Direction.FROM_TARGET
        and one.seq < seq
        and text(dig(one.params, "threadId")) == turn.thread
        and not was_answered(story, one, seq)
        for one in story.frames
    )


def was_interrupted(story: Story, turn: Turn, seq: int) -> bool:
    """Return whether the client had asked to interrupt the turn before."""
    return any(
        frame.method == "turn/interrupt"
        and frame.direction is Direction.TO_TARGET
        and frame.seq < seq
        and text(dig(frame.params, "turnId")) == turn.id
        for frame in story.frames
    )


def last_told(story: Story, turn: Turn, since: int, seq: int) -> dict[str, Any] | None:
    """Return the last message about a turn after one frame and before another."""
    for frame in reversed(story.frames):
        if not since < frame.seq < seq or frame.direction is Direction.TO_TARGET:
            continue
        if text(dig(frame.params, "turnId")) != turn.id:
            continue
        if frame.kind is Kind.REQUEST:
            return {"request": frame.method}
        kind = text(dig(frame.params, "item", "type"))
        if frame.method in _TOLD and kind != "userMessage":
            where = {"where": {"item.type": kind}} if kind else {}
            return {"notification": frame.method, **where}
    return None
