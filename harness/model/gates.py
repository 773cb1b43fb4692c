"""Gates: named points where the model's stream or a command waits for the client's side.

No gate depends on time. Both sides can wait at a gate: the stream until it is open, the player
until it is reached. Commands reach their gates through named pipes (`named_pipes`).
"""

import anyio


class Gates:
    """The gates of one scenario."""

    def __init__(self) -> None:
        self._open_events: dict[str, anyio.Event] = {}
        self._reached_events: dict[str, anyio.Event] = {}
        self._all_open = False

    def open(self, name: str) -> None:
        """Open a gate for current and later waiters."""
        self._event(self._open_events, name).set()

    def open_all(self) -> None:
        """Open every gate, also those not used so far."""
        self._all_open = True
        for event in self._open_events.values():
            event.set()

    def is_open(self, name: str) -> bool:
        """Return whether the gate is open, or all gates are."""
        return self._all_open or self._event(self._open_events, name).is_set()

    async def pass_through(self, name: str) -> None:
        """Mark the gate as reached, then wait until it is open."""
        self.reach(name)
        await self.wait_until_open(name)

    def reach(self, name: str) -> None:
        """Mark the gate as reached."""
        self._event(self._reached_events, name).set()

    async def wait_until_open(self, name: str) -> None:
        """Wait until the gate is open."""
        event = self._event(self._open_events, name)
        if not self._all_open:
            await event.wait()

    async def wait_until_reached(self, name: str) -> None:
        """Wait until a stream or command has reached the gate."""
        await self._event(self._reached_events, name).wait()

    @staticmethod
    def _event(events: dict[str, anyio.Event], name: str) -> anyio.Event:
        return events.setdefault(name, anyio.Event())
