"""Faults on stored traces, by functions that return a changed copy.

In the copy frames are numbered anew, and marks keep their place among them.
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
from harness.trace.store import reframe
from harness.trace.trace import B, Mark, Trace


def apply(fault: Fault, trace: Trace) -> Trace:
    """Return the trace with the fault in it, on the first connection where it finds a place.

    Frames that the fault only held back keep their places. Raises `NotApplied` if the fault finds
    no place on any connection.
    """
    missing: list[str] = []
    for part in _connections(trace):
        applied = _apply([fault], trace, part)[fault.id]
        if isinstance(applied, Trace):
            return applied
        missing.append(str(applied))
    raise NotApplied(missing[0] if missing else "no frames")


def apply_each(faults: Iterable[Fault], trace: Trace) -> dict[str, Trace]:
    """Return a trace for each fault that finds a place, by the id of the fault.

    Like `apply` for each fault, but the conversation is followed only once.
    """
    traces: dict[str, Trace] = {}
    remaining = list(faults)
    for part in _connections(trace):
        applied = _apply(remaining, trace, part)
        traces |= {name: result for name, result in applied.items() if isinstance(result, Trace)}
        remaining = [fault for fault in remaining if fault.id not in traces]
    return traces


def _connections(trace: Trace) -> Iterator[Trace]:
    """Yield for each connection a trace of its frames alone."""
    connections = dict.fromkeys(frame.connection for frame in trace.frames)
    # Most marks do not name their connection, so with several clients none is used.
    marks = trace.marks if len(connections) == 1 else []
    for connection in connections:
        frames = [frame for frame in trace.frames if frame.connection == connection]
        yield dataclasses.replace(trace, frames=frames, marks=marks)


def _apply(faults: Sequence[Fault], trace: Trace, part: Trace) -> dict[str, Trace | NotApplied]:
    """Return for each fault the trace with it on the connection of `part`, or a `NotApplied`."""
    site = FaultSite(part.marks)
    live = [fault for fault in faults if not isinstance(fault.change, StoredOnly)]
    streams = [FaultStream(fault, site=site) for fault in live]
    passed: list[list[Frame]] = [[] for _ in live]
    for frame in part.frames:
        site.feed(frame)
        for stream, out in zip(streams, passed, strict=True):
            out += stream.feed(frame)
    results: dict[str, Trace | NotApplied] = {}
    for fault, stream, out in zip(live, streams, passed, strict=True):
        out += stream.end()
        if not stream.has_applied:
            results[fault.id] = NotApplied(stream.missing)
        elif fault.condition is not None and not fault.condition.holds(part):
            results[fault.id] = NotApplied(f"no {fault.condition.description}")
        else:
            results[fault.id] = _merge(trace, part.frames[0].connection, out)
    for fault in faults:
        if isinstance(fault.change, StoredOnly):
            try:
                results[fault.id] = fault.change.apply(site, trace)
            except NotApplied as reason:
                results[fault.id] = reason
    return results


def _merge(trace: Trace, connection: str, passed: Sequence[Frame]) -> Trace:
    """Return the trace with the frames of a connection replaced by `passed`."""
    other_frames = [frame for frame in trace.frames if frame.connection != connection]
    return _rebuild(trace, sorted([*other_frames, *passed], key=lambda frame: frame.seq))


def drop(trace: Trace, *frames: Frame) -> Trace:
    """Return the trace without these frames."""
    dropped = {frame.seq for frame in frames}
    return _rebuild(trace, [frame for frame in trace.frames if frame.seq not in dropped])


def change(trace: Trace, frames: Iterable[Frame], how: Callable[[Any], Any]) -> Trace:
    """Return the trace with the messages of these frames changed by `how`, unless not JSON."""
    changed = {frame.seq for frame in frames if frame.json is not MISSING}
    return _rebuild(
        trace,
        [
            reframe(frame, seq=frame.seq, value=how(copy.deepcopy(frame.json)))
            if frame.seq in changed
            else frame
            for frame in trace.frames
        ],
    )


def insert(trace: Trace, *, after: Frame, message: Any, origin: Origin = Origin.TARGET) -> Trace:
    """Return the trace with a message, or bytes, right after a frame, on its connection."""
    towards = Direction.FROM_TARGET if origin is Origin.TARGET else Direction.TO_TARGET
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    blank = dataclasses.replace(
        after, direction=towards, origin=origin, deliberate=False, damage=None
    )
    return _rebuild(
        trace, _insert_after(trace.frames, after, [reframe(blank, seq=after.seq, raw=raw)])
    )


def replace_marks(trace: Trace, marks: Iterable[Mark[B]], how: Callable[[B], B]) -> Trace:
    """Return the trace with the bodies of these marks changed by `how`."""
    new = {id(mark): dataclasses.replace(mark, body=how(mark.body)) for mark in marks}
    changed = [new.get(id(mark), mark) for mark in trace.marks]
    return Trace(header=trace.header, frames=trace.frames, marks=changed, end=trace.end)


def remove_marks(trace: Trace, is_removed: Callable[[Mark[MarkBody]], bool]) -> Trace:
    """Return the trace without the marks for which `is_removed` is true."""
    marks = [mark for mark in trace.marks if not is_removed(mark)]
    return Trace(header=trace.header, frames=trace.frames, marks=marks, end=trace.end)


def _insert_after(frames: Sequence[Frame], anchor: Frame, new: list[Frame]) -> list[Frame]:
    place = next(index for index, frame in enumerate(frames) if frame.seq == anchor.seq) + 1
    return [*frames[:place], *new, *frames[place:]]


def _rebuild(trace: Trace, frames: list[Frame]) -> Trace:
    """Return a trace of these frames, numbered anew; marks keep their places among them."""
    numbered = [
        frame if frame.seq == seq else dataclasses.replace(frame, seq=seq)
        for seq, frame in enumerate(frames)
    ]
    marks = [_move_mark(mark, frames) for mark in trace.marks]
    return Trace(header=trace.header, frames=numbered, marks=marks, end=trace.end)


def _move_mark(mark: Mark[MarkBody], frames: list[Frame]) -> Mark[MarkBody]:
    before = sum(frame.seq <= mark.after for frame in frames)
    return mark if before - 1 == mark.after else dataclasses.replace(mark, after=before - 1)
