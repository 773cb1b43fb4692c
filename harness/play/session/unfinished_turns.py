"""Turns that may still run when a conversation is over, because nobody was told of their end.

A client that has left a thread may start a turn on it. Some servers run that turn and tell its
starter nothing of it, since the text does not say who is told of what. Its model calls can come
after the silence that ends the conversation, and would then be counted in the next one. So the
process is not used again.
"""

from typing import Final

from harness.protocol.values import dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import ServerEnded
from harness.trace.trace import Trace

_COMPACT: Final = "thread/compact/start"
_BEGIN: Final = ("turn/start", "review/start", _COMPACT)


def may_still_run(trace: Trace) -> bool:
    """Return whether the process of the trace's end granted a turn whose end was told on no
    connection.

    A compaction is granted without the id of its turn: it ends with a turn of its thread that ends
    after the answer.
    """
    begun = max((mark.after for mark in trace.marks_of(ServerEnded)), default=-1)
    pairs = Correlation()
    turns: set[str] = set()
    ended: set[str] = set()
    compacted: set[str] = set()
    for frame in trace.frames:
        asked = pairs.feed(frame)
        if frame.seq <= begun:
            continue
        if asked is not None and frame.kind is Kind.RESPONSE and asked.method in _BEGIN:
            if turn := text(dig(frame.result, "turn", "id")):
                turns.add(turn)
            elif asked.method == _COMPACT:
                compacted.add(text(obj(asked.params).get("threadId")))
        elif _tells_an_end(frame):
            ended.add(text(dig(frame.params, "turn", "id")))
            compacted.discard(text(obj(frame.params).get("threadId")))
    return bool(turns - ended or compacted)


def _tells_an_end(frame: Frame) -> bool:
    told = frame.kind is Kind.NOTIFICATION and frame.direction is Direction.FROM_TARGET
    return told and frame.method == "turn/completed"
