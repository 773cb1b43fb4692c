"""Waits for frames by predicate; frames that a wait skips stay for the next one.

The end of the connection wakes every waiter.
"""

from collections.abc import Callable

import anyio

from harness.errors import TargetGone
from harness.trace.frame import Frame

Predicate = Callable[[Frame], bool]


class _Waiter:
    __slots__ = ("event", "found", "matches")

    def __init__(self, matches: Predicate) -> None:
        self.matches = matches
        self.event = anyio.Event()
        self.found: Frame | None = None


class Inbox:
    """Frames received on one connection, in order."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.closed = False
        self._waiters: list[_Waiter] = []

    def put(self, frame: Frame) -> None:
        """Add a frame that arrived; wake the waiters whose predicate it meets."""
        self.frames.append(frame)
        for waiter in list(self._waiters):
            if waiter.matches(frame):
                waiter.found = frame
                waiter.event.set()
                self._waiters.remove(waiter)

    def close(self) -> None:
        """Wake every waiter: no more frames will arrive."""
        self.closed = True
        for waiter in self._waiters:
            waiter.event.set()
        self._waiters.clear()

    def restart(self) -> None:
        """Forget the received frames, before the next scenario on a shared process."""
        self.frames.clear()

    async def wait(self, matches: Predicate, *, start: int = 0) -> Frame:
        """Wait for the first frame from index `start` on that matches.

        There is no time limit: the caller sets one. Raises `TargetGone` if the connection ends.
        """
        for frame in self.frames[start:]:
            if matches(frame):
                return frame
        if self.closed:
            raise TargetGone("the server closed the connection")
        waiter = _Waiter(matches)
        self._waiters.append(waiter)
        try:
            await waiter.event.wait()
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        if waiter.found is None:
            raise TargetGone("the server closed the connection")
        return waiter.found
