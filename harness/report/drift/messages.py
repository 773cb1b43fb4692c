"""The messages of stored traces as the two comparisons of drift read them.

They are read from the bytes of the wire: the renames of a profile are not applied.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.protocol.values import obj
from harness.report.drift.release_schemas import Part
from harness.trace.correlation import Correlation
from harness.trace.frame import Direction, Frame, Kind, parse
from harness.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    `name` has its kind and method: `turn/started`, `turn/start result`, `turn/start error`,
    `turn/start request`. `part` is None if no schema describes it. `body` are its params, its
    result or its error. `thread` is the thread that it names, "" if none.
    """

    name: str
    method: str
    part: Part | None
    body: Any
    scenario: str
    connection: str
    from_server: bool


def messages_of(trace: Trace, scenario: str) -> Iterator[Message]:
    """Yield the messages of a trace in order; malformed lines and stray answers are left out."""
    correlation = Correlation()
    for frame in trace.frames:
        request = correlation.feed(frame)
        message = _message_of(frame, request, scenario)
        if message is not None:
            yield message


def _message_of(frame: Frame, request: Frame | None, scenario: str) -> Message | None:
    from_server = frame.direction is Direction.FROM_TARGET
    if frame.damage is not None:
        return None
    members = obj(parse(frame.raw))

    def message(name: str, method: str, part: Part | None, body: Any) -> Message:
        return Message(name, method, part, body, scenario, frame.connection, from_server)

    match frame.kind:
        case Kind.NOTIFICATION:
            part = Part.NOTIFICATION if from_server else None
            return message(frame.method, frame.method, part, members.get("params"))
        case Kind.REQUEST:
            part = Part.SERVER_REQUEST if from_server else None
            return message(f"{frame.method} request", frame.method, part, members.get("params"))
        case Kind.RESPONSE | Kind.ERROR if request is not None:
            failed = frame.kind is Kind.ERROR
            part = Part.RESULT if from_server and not failed else None
            word, member = ("error", "error") if failed else ("result", "result")
            return message(f"{request.method} {word}", request.method, part, members.get(member))
        case _:
            return None
