"""The base of rules over the events of one process.

A mark of a model call names no process: it is of the one that ran then, if only one did.
"""

from typing import Any, TypeVar, cast

from harness.judge.base import Monitor
from harness.judge.rules.shared.violations import Member, whole
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall, ModelEnd, ProgramEnded, ProgramStarted, TurnAsked
from harness.trace.surface.agent_exec import Stream, StreamLedger
from harness.trace.trace import Trace

B = TypeVar("B", ModelCall, ModelEnd)


class StreamRule(Monitor):
    """A rule over the events of one process."""

    @property
    def stream(self) -> Stream:
        """Return the view of its events so far."""
        return cast("Stream", self.conversation)

    @property
    def debts(self) -> StreamLedger:
        """Return what it still owes."""
        return cast("StreamLedger", self.owed)


def event(frame: Frame) -> dict[str, Any]:
    """The members of an event."""
    return obj(frame.json)


def item_of(frame: Frame) -> dict[str, Any]:
    """The item that an event carries."""
    return obj(event(frame).get("item"))


def item_type(frame: Frame) -> str:
    """The type of the item that an event carries, "" for none."""
    return text(item_of(frame).get("type"))


def item_subject(stream: Stream, frame: Frame) -> str:
    """Name the item of an event by its id, or by the number of its event.

    Ids are no part of the text, so an item may have none.
    """
    named = item_of(frame).get("id")
    kind = item_type(frame) or "item"
    if isinstance(named, str) and named:
        return f"{kind} {named} of {frame.connection}"
    return f"{kind} of {frame.connection}, item event {stream.items.index(frame) + 1}"


def member(frame: Frame, *path: str | int) -> Member:
    """A member of an event, at a path from its beginning."""
    return whole(frame, *path)


def asked_of(trace: Trace, connection: str) -> TurnAsked | None:
    """Return the request to a process, None if nobody noted it."""
    asked = (mark.body for mark in trace.marks_of(TurnAsked))
    return next((one for one in asked if one.connection == connection), None)


def of_process(trace: Trace, connection: str, body: type[B]) -> list[B]:
    """The marks of model calls that were made while a process ran.

    None where another process ran at the same time: nobody knows whose they are.
    """
    found: list[B] = []
    running: set[str] = set()
    mine = False
    for mark in trace.marks:
        match mark.body:
            case ProgramStarted(connection=name):
                running.add(name)
            case ProgramEnded(connection=name):
                running.discard(name)
            case _:
                pass
        mine = connection in running
        if mine and len(running) > 1:
            return []
        if mine and isinstance(mark.body, body):
            found.append(mark.body)
    return found
