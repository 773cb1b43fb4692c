"""Several faults at work on one conversation, one behind the other.

The first fault stands next to the server: what it makes of a message of the server is what the
second one sees; messages of the client come the other way.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from harness.faults.live.fault import LiveFault
from harness.trace.frame import Damage, Direction, Frame


class AtWork(Protocol):
    """One live fault or several, fed with lines and giving lines."""

    @property
    def held(self) -> int:
        """Return the number of lines kept back now."""
        ...

    def feed(
        self, raw: bytes, direction: Direction, *, damage: Damage | None = None
    ) -> list[Frame]:
        """Take a line of either direction; give what is to be passed on now."""
        ...

    def quiet(self) -> list[Frame]:
        """Nothing has come for a while: give what is held."""
        ...

    def end(self) -> list[Frame]:
        """The conversation is over: give what is held."""
        ...


class FaultChain:
    """Faults, one at least, between one client and a server; fed like one of them."""

    def __init__(self, faults: Sequence[LiveFault]) -> None:
        if not faults:
            raise ValueError("a chain of no faults")
        self.faults = tuple(faults)

    @property
    def held(self) -> int:
        """Return the number of lines kept back now, by all of them."""
        return sum(one.held for one in self.faults)

    def feed(
        self, raw: bytes, direction: Direction, *, damage: Damage | None = None
    ) -> list[Frame]:
        """Take a line of either direction; give what is to be passed on now."""
        at = 0 if direction is Direction.FROM_TARGET else len(self.faults) - 1
        return self._beyond(at, self.faults[at].feed(raw, direction, damage=damage))

    def quiet(self) -> list[Frame]:
        """Nothing has come for a while: give what is held."""
        return self._all(LiveFault.quiet)

    def end(self) -> list[Frame]:
        """The conversation is over: give what is held."""
        return self._all(LiveFault.end)

    def _all(self, release: Callable[[LiveFault], list[Frame]]) -> list[Frame]:
        """Release what each holds; the faults beyond it see that, and are released after it."""
        out: list[Frame] = []
        for at, one in enumerate(self.faults):
            out += self._beyond(at, release(one))
        # What went towards the server may be held by a fault that had its turn already.
        for at, one in reversed(list(enumerate(self.faults))):
            out += self._beyond(at, release(one))
        return out

    def _beyond(self, at: int, frames: list[Frame]) -> list[Frame]:
        """Return the frames that leave the chain when the fault at this place passes some on."""
        out: list[Frame] = []
        for frame in frames:
            then = at + 1 if frame.direction is Direction.FROM_TARGET else at - 1
            if 0 <= then < len(self.faults):
                passed = self.faults[then].feed(frame.raw, frame.direction, damage=frame.damage)
                out += self._beyond(then, passed)
            else:
                out.append(frame)
        return out
