"""The order in which the client sent and received messages.

A message that the client received after it had sent another may have been written before that other
arrived. So this order shows whether a request can have caused a message; `Trace.before` says which
message was written first. Between connections it is the order in which the harness recorded the
messages.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter

from harness.trace.frame import Frame
from harness.trace.marks import MarkBody
from harness.trace.trace import Mark, Trace

_ARRIVAL = attrgetter("seq")


def came_before(first: Frame, second: Frame) -> bool:
    """Return whether the client sent or received `first` before `second`."""
    return first.seq < second.seq


def came_between(first: Frame, middle: Frame, last: Frame) -> bool:
    """Return whether the client sent or received `middle` after `first` and before `last`."""
    return first.seq < middle.seq < last.seq


def received_before_sent(received: Frame, sent: Frame) -> bool:
    """Return whether the client got the server's message `received` before it sent `sent`.

    If so, the server wrote `received` before `sent` reached it, even on another connection.
    """
    return received.from_target and not sent.from_target and received.seq < sent.seq


def marked_before(mark: Mark[MarkBody], frame: Frame) -> bool:
    """Return whether a mark was made before the client sent or received a message."""
    return mark.after < frame.seq


def marked_before_next(mark: Mark[MarkBody], frame: Frame) -> bool:
    """Return whether a mark was made before the message that follows `frame`."""
    return mark.after <= frame.seq


def by_arrival(frames: Iterable[Frame]) -> list[Frame]:
    """Return the messages in the order in which the client sent and received them."""
    return sorted(frames, key=_ARRIVAL)


def earliest(frames: Iterable[Frame]) -> Frame | None:
    """Return the message that the client sent or received first, None if there is none."""
    return min(frames, key=_ARRIVAL, default=None)


def frames_until(trace: Trace, frame: Frame) -> list[Frame]:
    """Return the messages of the trace up to and including a frame, in order."""
    return trace.frames[: bisect_right(trace.frames, frame.seq, key=_ARRIVAL)]


def frames_before(trace: Trace, frame: Frame, limit: int) -> list[Frame]:
    """Return the last `limit` messages of the trace before a frame, in order."""
    return trace.frames[max(0, frame.seq - limit) : frame.seq]


def frames_between(trace: Trace, first: Frame, last: Frame) -> list[Frame]:
    """Return the messages of the trace after one and before another, in order."""
    return trace.frames[first.seq + 1 : last.seq]
