"""Turns that may still run when a conversation ends, because no connection got their end.

A client that has unsubscribed from a thread may start a turn on it. Some servers run that turn and
send its starter no notifications, since the specification does not say who gets which. Its model
calls can come after the silence that ends the conversation, and would then be counted in the next
one. So the process is not used again.
"""

from typing import Final

from harness.protocol.values import dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import ServerEnded
from harness.trace.trace import Trace

_COMPACT: Final = "thread/compact/start"
_TURN_METHODS: Final = ("turn/start", "review/start", _COMPACT)


def may_still_run(trace: Trace) -> bool:
    """Return whether the last process of a trace granted a turn whose end no connection got.

    The result of a compaction has no turn id: it counts as ended when a turn of its thread ends
    after the answer.
    """
    begun = max((mark.after for mark in trace.marks_of(ServerEnded)), default=-1)
    pairs = Correlation()
    turns: set[str] = set()
    ended: set[str] = set()
    compacted: set[str] = set()
    for frame in trace.frames:
        request = pairs.feed(frame)
        if frame.seq <= begun:
            continue
        if request is not None and frame.kind is Kind.RESPONSE and request.method in _TURN_METHODS:
            if turn := text(dig(frame.result, "turn", "id")):
                turns.add(turn)
            elif request.method == _COMPACT:
                compacted.add(text(obj(request.params).get("threadId")))
        elif _is_turn_end(frame):
            ended.add(text(dig(frame.params, "turn", "id")))
            compacted.discard(text(obj(frame.params).get("threadId")))
    return bool(turns - ended or compacted)


def _is_turn_end(frame: Frame) -> bool:
    is_notification = frame.kind is Kind.NOTIFICATION and frame.direction is Direction.FROM_TARGET
    return is_notification and frame.method == "turn/completed"
