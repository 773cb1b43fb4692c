"""Client messages of a trace that overlap an unanswered request or a running turn."""

from typing import Final

from harness.protocol.values import dig, text
from harness.scenario.from_trace.story import Story, Turn
from harness.trace.frame import Direction, Frame, Kind

# The player sends these itself at the beginning of a connection.
GREETING_METHODS: Final = ("initialize", "initialized")


def has_spoken_before(story: Story, frame: Frame) -> bool:
    """Return whether the connection had a client message before, other than the greeting."""
    return any(
        earlier.connection == frame.connection
        and earlier.direction is Direction.TO_TARGET
        and earlier.seq < frame.seq
        and earlier.method not in GREETING_METHODS
        for earlier in story.frames
    )


def sent_more_before(story: Story, request: Frame, answer: Frame) -> bool:
    """Return whether the client sent a further message on the connection before the answer."""
    return any(
        frame.direction is Direction.TO_TARGET
        and frame.connection == request.connection
        and request.seq < frame.seq < answer.seq
        for frame in story.frames
    )


def overlaps_earlier_request(story: Story, request: Frame) -> bool:
    """Return whether an earlier request about the same thread was still unanswered."""
    thread = text(dig(request.params, "threadId"))
    if not thread:
        return False
    earlier = (
        frame
        for frame in story.frames
        if frame.kind is Kind.REQUEST
        and frame.direction is Direction.TO_TARGET
        and frame.seq < request.seq
        and text(dig(frame.params, "threadId")) == thread
    )
    answers = (story.answer_to(frame) for frame in earlier)
    return any(answer is None or answer.seq > request.seq for answer in answers)


def starts_beside_a_turn(story: Story, request: Frame) -> bool:
    """Return whether a turn/start came while its thread had a turn, running or requested.

    Servers differ: they reject it, add its input, queue it, or interrupt the running turn.
    """
    if request.method != "turn/start":
        return False
    thread = text(dig(request.params, "threadId"))
    is_begun = story.turn_at(thread, request.seq) is not None
    return is_begun or overlaps_earlier_request(story, request)


def accepted_ends(story: Story, turn: Turn) -> str | list[str]:
    """Return the status of a turn; a list of two if overlapping turns make either legal."""
    ends = ["completed", "interrupted"]
    is_beside = any(
        other is not turn
        and other.thread == turn.thread
        and (turn.runs_at(other.begins) or other.runs_at(turn.begins))
        for other in story.turns.values()
    )
    was_asked_beside = any(
        frame.kind is Kind.REQUEST
        and frame.direction is Direction.TO_TARGET
        and frame.method == "turn/start"
        and text(dig(frame.params, "threadId")) == turn.thread
        and turn.runs_at(frame.seq)
        for frame in story.frames
    )
    return ends if turn.status in ends and (is_beside or was_asked_beside) else turn.status
