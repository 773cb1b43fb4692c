"""The frames that have come and were not passed on yet: all that a fault can still change.

All frames are of one connection. Order within one direction is kept, but for what a fault moves on
purpose. A frame that is held back keeps back what comes after it in its direction, and nothing of
the other direction.
"""

import copy
import dataclasses
import json
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from harness.faults.site import FaultSite
from harness.protocol.values import MISSING
from harness.trace.frame import Direction, Frame, Origin
from harness.trace.store import reframed

# One run of a fault over one conversation: it is sent each frame after it was queued, None at the
# end. It raises `NotApplied` where it cannot find its place any more.
Steps: TypeAlias = Generator[None, Frame | None, None]
# A fault, as what it does with the frames that pass.
Change: TypeAlias = Callable[["FrameQueue"], Steps]


@dataclasses.dataclass(slots=True, eq=False)
class _Entry:
    """A frame in the queue: `key` is the seq it came with, None for one that a fault added."""

    key: int | None
    frame: Frame
    held: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Act:
    """One thing that was done to a frame: a word for it, the frame as it came, and what it became.

    `became` is None for one that was dropped; for one that was moved, `anchor` is the frame that it
    was put next to.
    """

    what: str
    frame: Frame
    became: Frame | None = None
    anchor: Frame | None = None


class FrameQueue:
    """The frames that have come and were not passed on yet, with the site they are part of.

    Frames are named by the frame that came. One that was passed on cannot be changed any more:
    every operation on it raises `ValueError`, so no fault can use what it did not know in time.
    """

    def __init__(self, site: FaultSite) -> None:
        self.site = site
        self.acts: list[Act] = []
        self._entries: list[_Entry] = []
        self._aside: list[_Entry] = []

    @property
    def changed(self) -> bool:
        """Return whether anything was done to any frame; holding one back is no change."""
        return bool(self.acts)

    @property
    def held(self) -> int:
        """Return the number of frames in the queue or set aside."""
        return len(self._entries) + len(self._aside)

    @property
    def held_bytes(self) -> int:
        """Return the number of bytes of these frames."""
        return sum(len(entry.frame.raw) for entry in (*self._entries, *self._aside))

    def add(self, frame: Frame) -> None:
        """Take in a frame that came: it is part of the site, and queued."""
        self.site.feed(frame)
        self.take(frame)

    def take(self, frame: Frame) -> None:
        """Queue a frame that the site has been fed with."""
        self._entries.append(_Entry(frame.seq, frame))

    def since(self, frame: Frame) -> list[Frame]:
        """A frame and what has come after it, as far as it can still be changed."""
        keys = {entry.key for entry in self._entries}
        return [one for one in (frame, *self.site.later(frame)) if one.seq in keys]

    def drop(self, frame: Frame) -> None:
        """Do not pass it on."""
        self._entries.remove(self._entry(frame))
        self.acts.append(Act("dropped", frame))

    def alter(self, frame: Frame, how: Callable[[Any], Any]) -> None:
        """Replace its message by what `how` makes of a copy; bytes that are no JSON stay."""
        entry = self._entry(frame)
        if entry.frame.json is not MISSING:
            value = how(copy.deepcopy(entry.frame.json))
            entry.frame = reframed(entry.frame, seq=entry.frame.seq, value=value)
            self.acts.append(Act("changed", frame, entry.frame))

    def cut(self, frame: Frame) -> None:
        """Pass on the first half of its bytes alone, as a line of its own."""
        entry = self._entry(frame)
        half = entry.frame.raw[: len(entry.frame.raw) // 2]
        entry.frame = reframed(entry.frame, seq=entry.frame.seq, raw=half)
        self.acts.append(Act("cut", frame, entry.frame))

    def duplicate(self, frame: Frame) -> None:
        """Pass it on twice."""
        entry = self._entry(frame)
        self._put(_Entry(None, entry.frame), after=entry)
        self.acts.append(Act("repeated", frame, entry.frame))

    def insert(self, message: Any, *, after: Frame, origin: Origin = Origin.TARGET) -> None:
        """Pass on a message, or bytes, behind a frame and what was inserted behind it before."""
        towards = Direction.FROM_TARGET if origin is Origin.TARGET else Direction.TO_TARGET
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        anchor = self._entry(after)
        blank = dataclasses.replace(
            anchor.frame, direction=towards, origin=origin, deliberate=False, damage=None
        )
        new = reframed(blank, seq=anchor.frame.seq, raw=raw)
        self._put(_Entry(None, new), after=anchor)
        self.acts.append(Act("inserted", new, new, after))

    def put_before(self, frame: Frame, anchor: Frame) -> None:
        """Move a frame to the place right before another one."""
        moved, anchored = self._entry(frame), self._entry(anchor)
        self._entries.remove(moved)
        moved.frame = dataclasses.replace(moved.frame, seq=anchored.frame.seq)
        self._entries.insert(self._entries.index(anchored), moved)
        self.acts.append(Act("moved before", frame, moved.frame, anchor))

    def put_behind(self, frame: Frame, anchor: Frame) -> None:
        """Move a frame, queued or set aside, to the place right behind another one."""
        moved, anchored = self._entry(frame), self._entry(anchor)
        (self._aside if moved in self._aside else self._entries).remove(moved)
        moved.held = False
        moved.frame = dataclasses.replace(moved.frame, seq=anchored.frame.seq)
        self._put(moved, after=anchored)
        self.acts.append(Act("moved behind", frame, moved.frame, anchor))

    def swap(self, one: Frame, other: Frame) -> None:
        """Put two frames in each other's place."""
        first, second = self._entry(one), self._entry(other)
        first.frame, second.frame = (
            dataclasses.replace(second.frame, seq=first.frame.seq),
            dataclasses.replace(first.frame, seq=second.frame.seq),
        )
        first.key, second.key = second.key, first.key
        self.acts.append(Act("exchanged", one, second.frame, other))

    def set_aside(self, frame: Frame) -> None:
        """Keep one frame back, and let the others pass it; `put_behind` brings it back.

        One that is never brought back is passed on at the end.
        """
        entry = self._entry(frame)
        self._entries.remove(entry)
        self._aside.append(entry)

    def hold(self, frame: Frame) -> None:
        """Keep a frame back, and what follows it in its direction."""
        self._entry(frame).held = True

    def release(self, frame: Frame) -> None:
        """End a hold."""
        self._entry(frame).held = False

    def passing(self) -> list[Frame]:
        """Take out what can be passed on now, in order."""
        kept: list[_Entry] = []
        out: list[Frame] = []
        blocked: set[Direction] = set()
        for entry in self._entries:
            if entry.held or entry.frame.direction in blocked:
                blocked.add(entry.frame.direction)
                kept.append(entry)
            else:
                out.append(entry.frame)
        self._entries = kept
        return out

    def rest(self) -> list[Frame]:
        """Take out everything: what is queued, then what was set aside and not brought back."""
        out = [entry.frame for entry in (*self._entries, *self._aside)]
        self._entries, self._aside = [], []
        return out

    def release_all(self) -> None:
        """End every hold."""
        for entry in self._entries:
            entry.held = False

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
