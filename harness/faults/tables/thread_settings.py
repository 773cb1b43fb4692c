"""Faults of a thread's settings and of the moves of its status."""

from itertools import pairwise

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.trace import Trace
from harness.trace.values import dig, obj, text


@fault(
    "bare-thread-refused",
    rule="thread.start-without-params",
    on="bare-thread",
    reason="All params of thread/start are optional.",
)
def bare_refused(scene: Scene) -> Trace:
    """An error for a thread/start without params, after another request was served."""

    def bare(frame_seq: int) -> bool:
        return any(
            answer.seq < frame_seq and scene.conversation.request_of(answer) is not None
            for answer in scene.trace.frames
        )

    answers = scene.answers(
        "thread/start", lambda f: not obj(scene.request_of(f).params) and bare(f.seq)
    )
    refusal = {"code": -32602, "message": "missing field cwd"}
    asked = {"id": answers[0].id, "error": refusal}
    return op.edit(scene.trace, answers[0], (), asked)


@fault(
    "thread-read-in-another-folder",
    rule="thread.cwd-captured",
    on="bare-thread",
    reason="The working directory of a thread is the one that was captured for it.",
)
def read_elsewhere(scene: Scene) -> Trace:
    """thread/read shows another cwd than the reply to thread/start."""
    started = scene.answers("thread/start")
    mine = {text(dig(answer.result, "thread", "id")) for answer in started}
    path = ("result", "thread", "cwd")
    moved = {
        text(obj(frame.params).get("threadId"))
        for frame in scene.trace.frames
        if frame.method == "turn/start" and "cwd" in obj(frame.params)
    }
    reads = scene.answers("thread/read", lambda f: text(dig(f.result, "thread", "id")) in mine)
    for read in reads:
        if text(dig(read.result, "thread", "id")) not in moved:
            return op.edit(scene.trace, read, path, "/somewhere/else")
    raise NotApplied("every thread that is read was moved by a turn")


@fault(
    "status-moves-beside-the-table",
    rule="status.known-move",
    on="two-turns-read",
    reason="The text does not show the moves; from notLoaded our table has none to active.",
)
def odd_move(scene: Scene) -> Trace:
    """A thread is said to be notLoaded between two turns."""
    statuses = scene.statuses()
    for before, after in pairwise(statuses):
        if dig(after.params, "status", "type") == "active":
            path = ("params", "status")
            return op.edit(scene.trace, before, path, {"type": "notLoaded"})
    raise NotApplied("no status before active")
