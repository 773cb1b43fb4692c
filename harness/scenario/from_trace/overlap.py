"""Messages that the client of a trace sent before something else was answered."""

from typing import Final

from harness.protocol.values import dig, text
from harness.scenario.from_trace.story import Story
from harness.trace.frame import Direction, Frame, Kind

# What the player says by itself at the beginning of a connection.
GREETING: Final = ("initialize", "initialized")


def spoke_before(story: Story, frame: Frame) -> bool:
    """Return whether the client said anything on the connection before, but for the greeting."""
    return any(
        one.connection == frame.connection
        and one.direction is Direction.TO_TARGET
        and one.seq < frame.seq
        and one.method not in GREETING
        for one in story.frames
    )


def went_on_before(story: Story, request: Frame, answer: Frame) -> bool:
    """Return whether the client said something else on the connection before the answer came."""
    return any(
        one.direction is Direction.TO_TARGET
        and one.connection == request.connection
        and request.seq < one.seq < answer.seq
        for one in story.frames
    )


def overlaps_an_earlier_one(story: Story, request: Frame) -> bool:
    """Return whether an earlier request about the same thread was not answered yet."""
    thread = text(dig(request.params, "threadId"))
    if not thread:
        return False
    earlier = (
        one
        for one in story.frames
        if one.kind is Kind.REQUEST
        and one.direction is Direction.TO_TARGET
        and one.seq < request.seq
        and text(dig(one.params, "threadId")) == thread
    )
    answers = (story.answer(one) for one in earlier)
    return any(one is None or one.seq > request.seq for one in answers)
