"""Transcripts and traces for tests, given as the lines of a transcript file."""

import json

from harness.report.snapshot.message import Message, Transcript
from harness.trace.frame import Direction, Origin, classify
from harness.trace.frame import Frame as WireFrame
from harness.trace.marks import MarkBody, Place
from harness.trace.trace import End, Header, Mark, Trace

START = '-> {"method": "turn/start", "id": "<request 1>", "params": {"threadId": "<thread 1>"}}'
ANSWER = '<- {"id": "<request 1>", "result": {"turn": {"id": "<turn 1>", "status": "inProgress"}}}'
STARTED = '<- {"method": "turn/started", "params": {"turn": {"id": "<turn 1>"}}}'
PLAN = '<- {"method": "turn/plan/updated", "params": {"plan": []}}'
ITEM = (
    '<- {"method": "item/started", "params": {"item": {"type": "agentMessage", "id": "<item 1>"}}}'
)
COMPLETED = '<- {"method": "turn/completed", "params": {"turn": {"status": "completed"}}}'


def said(*lines: str, end: str = "quiescent", free: bool = False) -> Transcript:
    """Return a transcript with these lines; those after `client N:` belong to that client."""
    client, messages = 0, list[Message]()
    for line in lines:
        if line.startswith("client "):
            client = int(line[7:-1])
            continue
        arrow, _, rest = line.partition(" ")
        messages.append(Message(arrow == "->", json.loads(rest), client))
    return Transcript(tuple(messages), end, free)


def traced(*lines: str, marks: tuple[MarkBody, ...] = (), connection: str = "c1") -> Trace:
    """Return a trace whose frames are these lines."""
    frames: list[WireFrame] = []
    for seq, line in enumerate(lines):
        arrow, _, rest = line.partition(" ")
        to_target = arrow == "->"
        direction = Direction.TO_TARGET if to_target else Direction.FROM_TARGET
        origin = Origin.HARNESS if to_target else Origin.TARGET
        value = json.loads(rest)
        kind = classify(value)
        frames.append(
            WireFrame(seq, seq / 10, connection, direction, origin, rest.encode(), value, kind)
        )
    noted = [Mark(0.0, -1, mark) for mark in (Place(home="/h/home", cwd="/h/cwd"), *marks)]
    return Trace(Header(), frames, noted, End.QUIESCENT)
