"""Faults on stored traces: pure functions, the trace given is never touched.

Here: `apply`, which feeds a trace through a fault's stream, and the operators on whole traces that
faults for stored traces only need. Frames are numbered anew, and marks keep their place.
"""

import copy
import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.site import FaultSite
from harness.faults.stream import FaultStream
from harness.trace.frame import Direction, Frame, Origin
from harness.trace.marks import MarkBody
from harness.trace.store import reframed
from harness.trace.trace import B, Mark, Trace
from harness.trace.values import MISSING

# Object keys and array indices that lead to a value inside a message.
Path = tuple[str | int, ...]


def apply(fault: Fault, trace: Trace) -> Trace:
    """The trace with the fault in it, on the first connection where it finds a place.

    What a stream passed on late only because it had to wait is put back in its place. Raises
    `NotApplied` where the fault finds no place on any connection.
    """
    missing: list[str] = []
    for connection in dict.fromkeys(frame.connection for frame in trace.frames):
        frames = [frame for frame in trace.frames if frame.connection == connection]
        try:
            return _apply(fault, trace, dataclasses.replace(trace, frames=frames))
        except NotApplied as reason:
            missing.append(str(reason))
    raise NotApplied(missing[0] if missing else "no frames")


def _apply(fault: Fault, trace: Trace, mine: Trace) -> Trace:
    """The trace with the fault in it on the connection that `mine` has the frames of."""
    if fault.given is not None and not fault.given.holds(mine):
        raise NotApplied(f"no {fault.given.what}")
    if isinstance(fault.change, StoredOnly):
        return fault.change.make(FaultSite.of(mine), trace)
    stream = FaultStream(fault, trace.marks)
    passed = [out for frame in mine.frames for out in stream.feed(frame)]
    passed += stream.end()
    if not stream.applied:
        raise NotApplied(stream.missing)
    others = [frame for frame in trace.frames if frame.connection != mine.frames[0].connection]
    return _rebuilt(trace, sorted([*others, *passed], key=lambda frame: frame.seq))


def drop(trace: Trace, *frames: Frame) -> Trace:
    """Without these frames."""
    gone = {frame.seq for frame in frames}
    return _rebuilt(trace, [frame for frame in trace.frames if frame.seq not in gone])


def duplicate(trace: Trace, frame: Frame) -> Trace:
    """With a second copy right after the frame."""
    return _rebuilt(trace, _after(trace.frames, frame, [frame]))


def move(trace: Trace, frame: Frame, *, after: Frame) -> Trace:
    """With the frame right after another one."""
    rest = [other for other in trace.frames if other.seq != frame.seq]
    return _rebuilt(trace, _after(rest, after, [frame]))


def swap(trace: Trace, one: Frame, other: Frame) -> Trace:
    """With two frames in each other's place."""
    places = {one.seq: other, other.seq: one}
    return _rebuilt(trace, [places.get(frame.seq, frame) for frame in trace.frames])


def edit(trace: Trace, frame: Frame, path: Path, value: Any) -> Trace:
    """With the value at a path of one message set."""
    return change(trace, [frame], lambda message: _set(message, path, value))


def remove(trace: Trace, frame: Frame, path: Path) -> Trace:
    """With the member or element at a path of one message gone."""
    return change(trace, [frame], lambda message: _remove(message, path))


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


def rename(trace: Trace, frames: Iterable[Frame], old: str, new: str) -> Trace:
    """With every string value that equals `old`, at any depth of these messages, made `new`."""
    holding = [frame for frame in frames if old.encode() in frame.raw]
    return change(trace, holding, lambda message: _renamed(message, old, new))


def insert(trace: Trace, *, after: Frame, message: Any, origin: Origin = Origin.TARGET) -> Trace:
    """With a message, or bytes, right after a frame, on its connection."""
    towards = Direction.FROM_TARGET if origin is Origin.TARGET else Direction.TO_TARGET
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    blank = dataclasses.replace(after, direction=towards, origin=origin, deliberate=False, note="")
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


def _set(message: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    holder = _holder(message, path)
    try:
        holder[path[-1]] = value
    except (IndexError, TypeError) as error:
        raise NotApplied(f"a message has no place for {path[-1]!r}") from error
    return message


def _remove(message: Any, path: Path) -> Any:
    holder = _holder(message, path)
    try:
        del holder[path[-1]]
    except (KeyError, IndexError, TypeError) as error:
        raise NotApplied(f"a message has no {path[-1]!r}") from error
    return message


def _holder(message: Any, path: Path) -> Any:
    """What holds the last step of the path. A server's message may lack any of it."""
    for step in path[:-1]:
        try:
            message = message[step]
        except (KeyError, IndexError, TypeError) as error:
            raise NotApplied(f"a message has no {step!r}") from error
    return message


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _renamed(item, old, new) for key, item in members.items()}
    if isinstance(value, list):
        return [_renamed(item, old, new) for item in cast("list[Any]", value)]
    return new if value == old else value
