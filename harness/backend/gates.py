"""Gates: named places where the model's stream waits until the client's side goes on.

Nothing here knows time. A gate can be awaited from both sides: the stream waits for it to open,
the player for it to be reached.
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
        self._event(self._reached, name).set()
        if not self._all_open:
            await self._event(self._open, name).wait()

    async def reached(self, name: str) -> None:
        """Wait until the stream stands at (or has passed) the gate."""
        await self._event(self._reached, name).wait()

    @staticmethod
    def _event(events: dict[str, anyio.Event], name: str) -> anyio.Event:
        return events.setdefault(name, anyio.Event())
