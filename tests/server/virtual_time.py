"""Time that a test moves: an event loop whose clock is real time plus what was added.

Deadlines and pauses of anyio follow the loop's clock, so `advance` ends those that it passes, at
once and in order. The server's clock of the day is given to it (`running_server(clock=…)`), and can
jump alone, as after a correction by NTP; after a suspend both have moved.
"""

import asyncio
import time
from collections.abc import Callable
from typing import cast

import anyio
import anyio.lowlevel

ROUNDS_TO_WAKE = 5


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be set forward."""

    def __init__(self) -> None:
        super().__init__()
        self.added_seconds = 0.0

    def time(self) -> float:
        """Return the loop's seconds."""
        return super().time() + self.added_seconds


BACKEND: tuple[str, dict[str, Callable[[], asyncio.AbstractEventLoop]]] = (
    "asyncio",
    {"loop_factory": VirtualLoop},
)
"""The value of the fixture `anyio_backend` for tests with such time."""


class VirtualTime:
    """The time of the test that runs: `now` is the clock of the day, in seconds since 1970."""

    def __init__(self) -> None:
        self._loop = cast("VirtualLoop", asyncio.get_running_loop())
        self._jumped_seconds = 0.0

    def now(self) -> float:
        """Return the time of the day."""
        return time.time() + self._loop.added_seconds + self._jumped_seconds

    def elapsed(self) -> float:
        """Return the seconds that were added so far."""
        return self._loop.added_seconds

    async def advance(self, seconds: float) -> None:
        """Let so many seconds pass, once every task has come to where it waits."""
        await anyio.wait_all_tasks_blocked()
        self._loop.added_seconds += seconds
        for _ in range(ROUNDS_TO_WAKE):
            await anyio.lowlevel.checkpoint()  # Else the loop has not looked at its timers yet.
        await anyio.wait_all_tasks_blocked()

    def jump(self, seconds: float) -> None:
        """Set the clock of the day forward or, if negative, back, as NTP does."""
        self._jumped_seconds += seconds
