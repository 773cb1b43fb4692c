"""Faults on stored traces: pure functions, the trace given is never touched.

Frames are numbered anew, and marks keep their place.
"""

import copy
import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.site import FaultSite
from harness.faults.stream import FaultStream
from harness.protocol.values import MISSING
from harness.trace.frame import Direction, Frame, Origin
from harness.trace.marks import MarkBody
from harness.trace.store import reframed
from harness.trace.trace import B, Mark, Trace


def apply(fault: Fault, trace: Trace) -> Trace:
    """The trace with the fault in it, on the first connection where it finds a place.

    What a stream passed on late only because it had to wait is put back in its place. Raises
    `NotApplied` where the fault finds no place on any connection.
    """
    missing: list[str] = []
    for mine in _connections(trace):
        applied = _apply([fault], trace, mine)[fault.id]
        if isinstance(applied, Trace):
            return applied
        missing.append(str(applied))
    raise NotApplied(missing[0] if missing else "no frames")


def apply_each(faults: Iterable[Fault], trace: Trace) -> dict[str, Trace]:
    """The traces with one fault each in them, by the id of the fault; none where it has no place.

    The same as `apply` for one after the other, but the conversation is followed once for all.
    """
    found: dict[str, Trace] = {}
    left = list(faults)
    for mine in _connections(trace):
        applied = _apply(left, trace, mine)
        found |= {name: one for name, one in applied.items() if isinstance(one, Trace)}
        left = [fault for fault in left if fault.id not in found]
    return found


def _connections(trace: Trace) -> Iterator[Trace]:
    """The part of the trace that each connection has."""
    connections = dict.fromkeys(frame.connection for frame in trace.frames)
    # Marks do not say whose they are, so where there are several clients none is used.
    marks = trace.marks if len(connections) == 1 else []
    for connection in connections:
        frames = [frame for frame in trace.frames if frame.connection == connection]
        yield dataclasses.replace(trace, frames=frames, marks=marks)


def _apply(faults: Sequence[Fault], trace: Trace, mine: Trace) -> dict[str, Trace | NotApplied]:
    """Return the trace with each fault on the connection that `mine` has the frames of."""
    site = FaultSite(mine.marks)
    live = [fault for fault in faults if not isinstance(fault.change, StoredOnly)]
    streams = [FaultStream(fault, site=site) for fault in live]
    passed: list[list[Frame]] = [[] for _ in live]
    for frame in mine.frames:
        site.feed(frame)
        for stream, out in zip(streams, passed, strict=True):
            out += stream.feed(frame)
    made: dict[str, Trace | NotApplied] = {}
    for fault, stream, out in zip(live, streams, passed, strict=True):
        out += stream.end()
        if not stream.applied:
            made[fault.id] = NotApplied(stream.missing)
        elif fault.given is not None and not fault.given.holds(mine):
            made[fault.id] = NotApplied(f"no {fault.given.what}")
        else:
            made[fault.id] = _merged(trace, mine.frames[0].connection, out)
    for fault in faults:
        if isinstance(fault.change, StoredOnly):
            try:
                made[fault.id] = fault.change.make(site, trace)
            except NotApplied as reason:
                made[fault.id] = reason
    return made


def _merged(trace: Trace, connection: str, passed: Sequence[Frame]) -> Trace:
    """The trace with these frames as those of a connection."""
    others = [frame for frame in trace.frames if frame.connection != connection]
    return _rebuilt(trace, sorted([*others, *passed], key=lambda frame: frame.seq))


def drop(trace: Trace, *frames: Frame) -> Trace:
    """Without these frames."""
    gone = {frame.seq for frame in frames}
    return _rebuilt(trace, [frame for frame in trace.frames if frame.seq not in gone])


def change(trace: Trace, frames: Iterable[Frame], how: Callable[[Any], Any]) -> Trace:
    """With messages replaced by what `how` makes of a copy of each; bytes that are no JSON stay."""
    wanted = {frame.seq for frame in frames if frame.json is not MISSING}
    return _rebuilt(
        trace,
        [
            reframed(frame, seq=frame.seq, value=how(copy.deepcopy(frame.json)))
            if frame.seq in wanted
            else frame
            for frame in trace.frames
        ],
    )


def insert(trace: Trace, *, after: Frame, message: Any, origin: Origin = Origin.TARGET) -> Trace:
    """With a message, or bytes, right after a frame, on its connection."""
    towards = Direction.FROM_TARGET if origin is Origin.TARGET else Direction.TO_TARGET
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    blank = dataclasses.replace(
        after, direction=towards, origin=origin, deliberate=False, damage=None
    )
    return _rebuilt(trace, _after(trace.frames, after, [reframed(blank, seq=after.seq, raw=raw)]))


def remark(trace: Trace, marks: Iterable[Mark[B]], how: Callable[[B], B]) -> Trace:
    """With the bodies of these marks replaced by what `how` makes of each."""
    new = {id(mark): dataclasses.replace(mark, body=how(mark.body)) for mark in marks}
    changed = [new.get(id(mark), mark) for mark in trace.marks]
    return Trace(header=trace.header, frames=trace.frames, marks=changed, end=trace.end)


def unmark(trace: Trace, gone: Callable[[Mark[MarkBody]], bool]) -> Trace:
    """Without these marks."""
    marks = [mark for mark in trace.marks if not gone(mark)]
    return Trace(header=trace.header, frames=trace.frames, marks=marks, end=trace.end)


def _after(frames: Sequence[Frame], anchor: Frame, new: list[Frame]) -> list[Frame]:
    place = next(index for index, frame in enumerate(frames) if frame.seq == anchor.seq) + 1
    return [*frames[:place], *new, *frames[place:]]


def _rebuilt(trace: Trace, frames: list[Frame]) -> Trace:
    """A trace of these frames, numbered anew; marks stay behind as many old frames as before."""
    numbered = [
        frame if frame.seq == seq else dataclasses.replace(frame, seq=seq)
        for seq, frame in enumerate(frames)
    ]
    marks = [_placed(mark, frames) for mark in trace.marks]
    return Trace(header=trace.header, frames=numbered, marks=marks, end=trace.end)


def _placed(mark: Mark[MarkBody], frames: list[Frame]) -> Mark[MarkBody]:
    before = sum(frame.seq <= mark.after for frame in frames)
    return mark if before - 1 == mark.after else dataclasses.replace(mark, after=before - 1)
