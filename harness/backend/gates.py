"""Gates: named places where the model's stream or a command waits for the client's side.

Nothing here knows time. A gate can be awaited from both sides: the stream waits for it to open,
the player for it to be reached. Commands come to their gates through pipes (suite.pipes).
"""

import anyio


class Gates:
    """The gates of one scenario."""

    def __init__(self) -> None:
        self._open: dict[str, anyio.Event] = {}
        self._reached: dict[str, anyio.Event] = {}
        self._all_open = False

    def open(self, name: str) -> None:
        """Open a gate, now and for whoever comes later."""
        self._event(self._open, name).set()

    def open_all(self) -> None:
        """Open every gate, also those that nobody has named yet."""
        self._all_open = True
        for event in self._open.values():
            event.set()

    async def pass_through(self, name: str) -> None:
        """Say that the gate is reached, then wait until it is open."""
        self.reach(name)
        await self.opened(name)

    def reach(self, name: str) -> None:
        """Say that the gate is reached."""
        self._event(self._reached, name).set()

    async def opened(self, name: str) -> None:
        """Wait until the gate is open."""
        event = self._event(self._open, name)
        if not self._all_open:
            await event.wait()

    async def reached(self, name: str) -> None:
        """Wait until the stream stands at (or has passed) the gate."""
        await self._event(self._reached, name).wait()

    @staticmethod
    def _event(events: dict[str, anyio.Event], name: str) -> anyio.Event:
        return events.setdefault(name, anyio.Event())
