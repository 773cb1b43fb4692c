"""The queue of frames that were not passed on yet, which a fault can still change.

All frames are of one connection. The order within a direction is kept, except for frames that a
fault moves. A held frame also holds the later ones of its direction, and none of the other
direction.
"""

import copy
import dataclasses
import json
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from harness.faults.site import FaultSite
from harness.protocol.values import MISSING
from harness.trace.frame import Direction, Frame, Origin
from harness.trace.store import reframe

# One run of a fault over one conversation: it is sent each frame after it was queued, None at the
# end. It raises `NotApplied` if it can no longer find its place.
Steps: TypeAlias = Generator[None, Frame | None, None]
# A fault as a function over the queue.
Change: TypeAlias = Callable[["FrameQueue"], Steps]


@dataclasses.dataclass(slots=True, eq=False)
class _Entry:
    """A frame in the queue: `key` is the seq it came with, None for one that a fault added."""

    key: int | None
    frame: Frame
    is_held: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Act:
    """One act of a fault: a word for it, the original frame, and its replacement.

    `became` is None for a dropped frame. `anchor` is the frame next to the new place of a moved or
    inserted frame, or the other one of an exchange.
    """

    action: str
    frame: Frame
    became: Frame | None = None
    anchor: Frame | None = None


class FrameQueue:
    """The frames that were not passed on yet, with their site.

    A changed frame is still named by its original. Every operation on a frame that was passed on
    raises `ValueError`, so no fault can use later knowledge.
    """

    def __init__(self, site: FaultSite) -> None:
        self.site = site
        self.acts: list[Act] = []
        self._entries: list[_Entry] = []
        self._aside: list[_Entry] = []

    @property
    def has_changed(self) -> bool:
        """Return whether any frame was changed; holding one back is not a change."""
        return bool(self.acts)

    @property
    def held_count(self) -> int:
        """The number of frames in the queue or set aside."""
        return len(self._entries) + len(self._aside)

    @property
    def held_bytes(self) -> int:
        """The number of bytes of the frames in the queue or set aside."""
        return sum(len(entry.frame.raw) for entry in (*self._entries, *self._aside))

    def add(self, frame: Frame) -> None:
        """Feed a frame to the site, and queue it."""
        self.site.feed(frame)
        self.take(frame)

    def take(self, frame: Frame) -> None:
        """Queue a frame that was fed to the site already."""
        self._entries.append(_Entry(frame.seq, frame))

    def pending_from(self, frame: Frame) -> list[Frame]:
        """Return those of a frame and all later ones that are still queued."""
        keys = {entry.key for entry in self._entries}
        return [other for other in (frame, *self.site.frames_after(frame)) if other.seq in keys]

    def drop(self, frame: Frame) -> None:
        """Remove a frame from the queue, so that it is never passed on."""
        self._entries.remove(self._entry(frame))
        self.acts.append(Act("dropped", frame))

    def alter(self, frame: Frame, how: Callable[[Any], Any]) -> None:
        """Replace a message by the result of `how` on a copy; do nothing if it is not JSON."""
        entry = self._entry(frame)
        if entry.frame.json is not MISSING:
            value = how(copy.deepcopy(entry.frame.json))
            entry.frame = reframe(entry.frame, seq=entry.frame.seq, value=value)
            self.acts.append(Act("changed", frame, entry.frame))

    def cut(self, frame: Frame) -> None:
        """Cut a frame to the first half of its bytes."""
        entry = self._entry(frame)
        half = entry.frame.raw[: len(entry.frame.raw) // 2]
        entry.frame = reframe(entry.frame, seq=entry.frame.seq, raw=half)
        self.acts.append(Act("cut", frame, entry.frame))

    def duplicate(self, frame: Frame) -> None:
        """Queue a copy of a frame after it."""
        entry = self._entry(frame)
        self._put(_Entry(None, entry.frame), after=entry)
        self.acts.append(Act("repeated", frame, entry.frame))

    def insert(self, message: Any, *, after: Frame, origin: Origin = Origin.TARGET) -> None:
        """Queue a message, or bytes, after a frame and earlier insertions there."""
        towards = Direction.FROM_TARGET if origin is Origin.TARGET else Direction.TO_TARGET
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        anchor = self._entry(after)
        blank = dataclasses.replace(
            anchor.frame, direction=towards, origin=origin, deliberate=False, damage=None
        )
        new = reframe(blank, seq=anchor.frame.seq, raw=raw)
        self._put(_Entry(None, new), after=anchor)
        self.acts.append(Act("inserted", new, new, after))

    def move_before(self, frame: Frame, anchor: Frame) -> None:
        """Move a queued frame to the place right before another one."""
        moved, anchored = self._entry(frame), self._entry(anchor)
        self._entries.remove(moved)
        moved.frame = dataclasses.replace(moved.frame, seq=anchored.frame.seq)
        self._entries.insert(self._entries.index(anchored), moved)
        self.acts.append(Act("moved before", frame, moved.frame, anchor))

    def move_behind(self, frame: Frame, anchor: Frame) -> None:
        """Move a frame, queued or set aside, to the place right behind another one."""
        moved, anchored = self._entry(frame), self._entry(anchor)
        (self._aside if moved in self._aside else self._entries).remove(moved)
        moved.is_held = False
        moved.frame = dataclasses.replace(moved.frame, seq=anchored.frame.seq)
        self._put(moved, after=anchored)
        self.acts.append(Act("moved behind", frame, moved.frame, anchor))

    def swap(self, frame: Frame, other: Frame) -> None:
        """Exchange the places of two frames."""
        first, second = self._entry(frame), self._entry(other)
        first.frame, second.frame = (
            dataclasses.replace(second.frame, seq=first.frame.seq),
            dataclasses.replace(first.frame, seq=second.frame.seq),
        )
        first.key, second.key = second.key, first.key
        self.acts.append(Act("exchanged", frame, second.frame, other))

    def set_aside(self, frame: Frame) -> None:
        """Keep a frame back, and let others pass it, until `move_behind` or the end."""
        entry = self._entry(frame)
        self._entries.remove(entry)
        self._aside.append(entry)

    def hold(self, frame: Frame) -> None:
        """Hold a frame, and the later ones of its direction."""
        self._entry(frame).is_held = True

    def release(self, frame: Frame) -> None:
        """End the hold of a frame."""
        self._entry(frame).is_held = False

    def pop_ready(self) -> list[Frame]:
        """Remove and return the frames to pass on now, in order."""
        remaining: list[_Entry] = []
        out: list[Frame] = []
        blocked: set[Direction] = set()
        for entry in self._entries:
            if entry.is_held or entry.frame.direction in blocked:
                blocked.add(entry.frame.direction)
                remaining.append(entry)
            else:
                out.append(entry.frame)
        self._entries = remaining
        return out

    def pop_all(self) -> list[Frame]:
        """Remove and return all frames: the queued ones, then those set aside."""
        out = [entry.frame for entry in (*self._entries, *self._aside)]
        self._entries, self._aside = [], []
        return out

    def release_all(self) -> None:
        """End every hold."""
        for entry in self._entries:
            entry.is_held = False

    def _entry(self, frame: Frame) -> _Entry:
        for entry in (*self._entries, *self._aside):
            if entry.key == frame.seq:
                return entry
        raise ValueError(f"frame {frame.seq} ({frame.method or frame.kind}) was passed on already")

    def _put(self, entry: _Entry, *, after: _Entry) -> None:
        place = self._entries.index(after) + 1
        while place < len(self._entries) and self._entries[place].key is None:
            place += 1
        self._entries.insert(place, entry)
