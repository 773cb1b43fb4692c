"""The timing of faults: at the first frame that fits, at every one, or from one on.

A fault with another timing is a function with the same signature (`Change`) in its table, which
uses `wait_for` and the queue.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from harness.faults.base import Condition
from harness.faults.item_selectors import item_in
from harness.faults.operators import Operator, rename_ids
from harness.faults.queue import Change, FrameQueue, Steps
from harness.faults.selectors import Selector
from harness.faults.site import FaultSite, NotApplied
from harness.trace.frame import Frame
from harness.trace.trace import Trace

# Whether a frame that was set aside may follow the current one: (site, set aside, current).
Follows: TypeAlias = Callable[[FaultSite, Frame, Frame], bool]


def wait_for(queue: FrameQueue, pick: Selector) -> Generator[None, Frame | None, Frame]:
    """Receive frames until one fits, and return it. Raises `NotApplied` at the end if none fits.

    Frames are held back while it is unknown whether they fit.
    """
    waiting: list[Frame] = []
    while True:
        frame = yield
        _consider(queue, pick, frame, waiting)
        while waiting:
            fits = pick.fits(queue.site, waiting[0])
            if fits is None and frame is not None:
                break
            queue.release(waiting[0])
            if fits:
                for other in waiting:
                    queue.release(other)
                return waiting[0]
            waiting.pop(0)
        if frame is None:
            raise NotApplied(f"no {pick.description}")


@dataclass(frozen=True, slots=True)
class First:
    """A change that applies operators to the first frame that fits."""

    pick: Selector
    do: tuple[Operator, ...]

    def __call__(self, queue: FrameQueue) -> Steps:
        """Run the change over a conversation."""
        frame = yield from wait_for(queue, self.pick)
        _operate(queue, frame, self.do)


@dataclass(frozen=True, slots=True)
class Every:
    """A change that applies operators to every frame that fits."""

    pick: Selector
    do: tuple[Operator, ...]

    def __call__(self, queue: FrameQueue) -> Steps:
        """Run the change over a conversation."""
        waiting: list[Frame] = []
        while True:
            frame = yield
            _consider(queue, self.pick, frame, waiting)
            while waiting:
                fits = self.pick.fits(queue.site, waiting[0])
                if fits is None and frame is not None:
                    break
                queue.release(waiting[0])
                if fits:
                    _operate(queue, waiting[0], self.do)
                waiting.pop(0)
            if frame is None and not queue.has_changed:
                raise NotApplied(f"no {self.pick.description}")
            if frame is None:
                return


@dataclass(frozen=True, slots=True)
class Throughout:
    """A change that applies operators to the first frame that fits and to all later notifications
    of its item.
    """

    pick: Selector
    do: tuple[Operator, ...]

    def __call__(self, queue: FrameQueue) -> Steps:
        """Run the change over a conversation."""
        frame = yield from wait_for(queue, self.pick)
        item = item_in(queue.site, frame)
        yield from for_each_from(
            queue,
            frame,
            lambda now: _operate(queue, now, self.do) if queue.site.item_of(now) is item else None,
        )


@dataclass(frozen=True, slots=True)
class Delay:
    """A change that moves the first frame that fits behind a later one that `follows` accepts.

    `waits_for` names that later frame in messages.
    """

    pick: Selector
    waits_for: str
    follows: Follows

    def __call__(self, queue: FrameQueue) -> Steps:
        """Run the change over a conversation."""
        late = yield from wait_for(queue, self.pick)
        come = queue.pending_from(late)[1:]
        queue.set_aside(late)
        while True:
            for now in come:
                if self.follows(queue.site, late, now):
                    queue.move_behind(late, now)
                    return
            frame = yield
            if frame is None:
                raise NotApplied(f"no {self.waits_for} after {self.pick.description}")
            come = [frame]


@dataclass(frozen=True, slots=True)
class DelayBy:
    """A change that moves the first frame that fits behind `frames` later ones of its direction."""

    pick: Selector
    frames: int

    def __call__(self, queue: FrameQueue) -> Steps:
        """Run the change over a conversation."""
        late = yield from wait_for(queue, self.pick)
        come = queue.pending_from(late)[1:]
        queue.set_aside(late)
        passed = 0
        while True:
            for now in come:
                passed += now.direction is late.direction
                if passed == self.frames:
                    queue.move_behind(late, now)
                    return
            frame = yield
            if frame is None:
                raise NotApplied(f"only {passed} messages after {self.pick.description}")
            come = [frame]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Changes applied in turn; each starts with the frame after the previous change ended."""

    changes: tuple[Change, ...]

    def __call__(self, queue: FrameQueue) -> Steps:
        """Run the change over a conversation."""
        for change in self.changes:
            yield from change(queue)


def for_each_from(queue: FrameQueue, start: Frame, act: Callable[[Frame], None]) -> Steps:
    """Call `act` with each frame from `start` on that is still queued, and with every new one."""
    for frame in queue.pending_from(start):
        act(frame)
    while (now := (yield)) is not None:
        act(now)


def rename_id(queue: FrameQueue, start: Frame, old: str, new: str) -> Steps:
    """Rename an id in the server's messages from a frame on: every value `old` becomes `new`.

    In the client's messages the new id becomes the old one again.
    """

    def rename(frame: Frame) -> None:
        names = {old: new} if frame.from_target else {new: old, old: new}
        if any(name.encode() in frame.raw for name in names):
            queue.alter(frame, partial(rename_ids, names=names))

    yield from for_each_from(queue, start, rename)


def first(pick: Selector, *do: Operator) -> Change:
    """Return a change that applies operators to the first frame that fits."""
    return First(pick, do)


def every(pick: Selector, *do: Operator) -> Change:
    """Return a change that applies operators to every frame that fits."""
    return Every(pick, do)


def throughout(pick: Selector, *do: Operator) -> Change:
    """Return a change of the first frame that fits and of all later notifications of its item."""
    return Throughout(pick, do)


def delay(pick: Selector, waits_for: str, follows: Follows) -> Change:
    """Return a change that moves the first frame that fits behind one that `follows` accepts."""
    return Delay(pick, waits_for, follows)


def in_sequence(*changes: Change) -> Change:
    """Return a change that applies these changes in turn."""
    return Sequence(changes)


def requires(pick: Selector) -> Condition:
    """Return the condition that some frame of the conversation fits."""

    def holds(trace: Trace) -> bool:
        queue = FrameQueue(FaultSite(trace.marks))
        search = wait_for(queue, pick)
        next(search)
        try:
            for frame in trace.frames:
                queue.add(frame)
                search.send(frame)
            search.send(None)
        except StopIteration:
            return True
        except NotApplied:
            return False
        return False

    return Condition(pick.description, holds)


def _consider(queue: FrameQueue, pick: Selector, frame: Frame | None, waiting: list[Frame]) -> None:
    """Hold a new frame, and add it to `waiting`, if it fits or may still fit."""
    if frame is not None and pick.fits(queue.site, frame) is not False:
        queue.hold(frame)
        waiting.append(frame)


def _operate(queue: FrameQueue, frame: Frame, operators: tuple[Operator, ...]) -> None:
    for operator in operators:
        operator(queue, frame)
