"""A chain of several faults on one conversation.

The first fault is next to the server: the second one gets the server's messages as the first
changed them. The client's messages pass the faults in the opposite order.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from harness.faults.live.fault import LiveFault
from harness.trace.frame import Damage, Direction, Frame


class LineFilter(Protocol):
    """A filter of lines: one live fault, several, or a recorder."""

    @property
    def held_count(self) -> int:
        """The number of held lines."""
        ...

    def feed(
        self, raw: bytes, direction: Direction, *, damage: Damage | None = None
    ) -> list[Frame]:
        """Take a line of either direction; return the lines to pass on now."""
        ...

    def release_on_silence(self) -> list[Frame]:
        """Return the held lines, to be passed on after a silence."""
        ...

    def end(self) -> list[Frame]:
        """Return the held lines at the end of the conversation."""
        ...

    def note_client_left(self) -> None:
        """Note that the client ends the conversation before the server does."""
        ...


class FaultChain:
    """At least one fault between one client and a server; fed like a single fault."""

    def __init__(self, faults: Sequence[LiveFault]) -> None:
        if not faults:
            raise ValueError("a chain of no faults")
        self.faults = tuple(faults)

    @property
    def held_count(self) -> int:
        """The number of lines held by all faults."""
        return sum(fault.held_count for fault in self.faults)

    def feed(
        self, raw: bytes, direction: Direction, *, damage: Damage | None = None
    ) -> list[Frame]:
        """Take a line of either direction; return the lines to pass on now."""
        place = 0 if direction is Direction.FROM_TARGET else len(self.faults) - 1
        return self._beyond(place, self.faults[place].feed(raw, direction, damage=damage))

    def release_on_silence(self) -> list[Frame]:
        """Return the held lines after a silence."""
        return self._all(LiveFault.release_on_silence)

    def end(self) -> list[Frame]:
        """Return the held lines at the end of the conversation."""
        return self._all(LiveFault.end)

    def note_client_left(self) -> None:
        """Do nothing: a fault does not depend on who leaves first."""

    def _all(self, release: Callable[[LiveFault], list[Frame]]) -> list[Frame]:
        """Return the lines that leave the chain when every fault releases its held ones."""
        out: list[Frame] = []
        for place, fault in enumerate(self.faults):
            out += self._beyond(place, release(fault))
        # Lines towards the server may be held by a fault that was already released.
        for place, fault in reversed(list(enumerate(self.faults))):
            out += self._beyond(place, release(fault))
        return out

    def _beyond(self, place: int, frames: list[Frame]) -> list[Frame]:
        """Feed frames of the fault at `place` to the next; return those that leave the chain."""
        out: list[Frame] = []
        for frame in frames:
            next_place = place + 1 if frame.direction is Direction.FROM_TARGET else place - 1
            if 0 <= next_place < len(self.faults):
                passed = self.faults[next_place].feed(
                    frame.raw, frame.direction, damage=frame.damage
                )
                out += self._beyond(next_place, passed)
            else:
                out.append(frame)
        return out
