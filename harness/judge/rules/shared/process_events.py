"""Base of rules on the events of one `agent exec` process.

A mark of a model call names no process: it belongs to the only one that ran then, if any.
"""

from typing import Any, TypeVar, cast

from harness.judge.base import Monitor
from harness.judge.rules.shared.violations import Member, root_member
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall, ModelEnd, ProgramEnded, ProgramStarted, TurnRequested
from harness.trace.surface.agent_exec import Stream, StreamLedger
from harness.trace.trace import Trace

B = TypeVar("B", ModelCall, ModelEnd)


class StreamRule(Monitor):
    """Base of rules on the events that one `agent exec` process writes."""

    @property
    def stream(self) -> Stream:
        """Return the view of its events so far."""
        return cast("Stream", self.conversation)

    @property
    def obligations(self) -> StreamLedger:
        """Return its open obligations."""
        return cast("StreamLedger", self.owed)


def event(frame: Frame) -> dict[str, Any]:
    """Return the members of an event."""
    return obj(frame.json)


def item_of(frame: Frame) -> dict[str, Any]:
    """Return the item in an event."""
    return obj(event(frame).get("item"))


def item_type(frame: Frame) -> str:
    """Return the type of the item in an event, "" if it has none."""
    return text(item_of(frame).get("type"))


def item_subject(stream: Stream, frame: Frame) -> str:
    """Name the item of an event by its id, or by the number of its event.

    The specification has no ids, so an item may lack one.
    """
    item_id = item_of(frame).get("id")
    kind = item_type(frame) or "item"
    if isinstance(item_id, str) and item_id:
        return f"{kind} {item_id} of {frame.connection}"
    return f"{kind} of {frame.connection}, item event {stream.items.index(frame) + 1}"


def member(frame: Frame, *path: str | int) -> Member:
    """Return the member of an event at a path from its root."""
    return root_member(frame, *path)


def turn_request_of(trace: Trace, connection: str) -> TurnRequested | None:
    """Return the turn that a process was started for, None if it was not recorded."""
    requests = (mark.body for mark in trace.marks_of(TurnRequested))
    return next((request for request in requests if request.connection == connection), None)


def model_marks_of(trace: Trace, connection: str, body: type[B]) -> list[B]:
    """Return the marks of model calls while a process ran; [] if another process ran too."""
    bodies: list[B] = []
    running: set[str] = set()
    is_running = False
    for mark in trace.marks:
        match mark.body:
            case ProgramStarted(connection=name):
                running.add(name)
            case ProgramEnded(connection=name):
                running.discard(name)
            case _:
                pass
        is_running = connection in running
        if is_running and len(running) > 1:
            return []
        if is_running and isinstance(mark.body, body):
            bodies.append(mark.body)
    return bodies
