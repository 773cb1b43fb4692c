"""A transport with a fault in it, around another transport.

The recorder and the judge see the server's messages after the fault, and the client's before it.
"""

import contextlib
import math

import anyio

from harness.client.transport.base import Transport
from harness.client.transport.jsonl import Line
from harness.errors import TargetGone
from harness.faults.live.chain import LineFilter
from harness.trace.frame import Direction, Frame

# Silence after which held lines are released. A scripted model answers far quicker; a real one may
# not, so a proxy may set another value.
QUIET_SECONDS = 1.0


class FaultyTransport:
    """A transport with a fault in it, which can be exchanged between two conversations.

    With `live` None all lines pass unchanged.
    """

    def __init__(
        self,
        inner: Transport,
        live: LineFilter | None = None,
        *,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self.inner = inner
        self.live = live
        self._quiet = quiet_seconds
        self._ready: list[Line] = []
        self._waiting: anyio.CancelScope | None = None
        self._gone: TargetGone | None = None
        self._write_lock = anyio.Lock()

    @property
    def partial(self) -> bytes:
        """The beginning of a line of the server that has not ended yet."""
        return self.inner.partial

    @property
    def partial_size(self) -> int:
        """The number of bytes of that line so far, including those that `partial` does not keep."""
        return self.inner.partial_size

    async def exchange(self, live: LineFilter | None) -> None:
        """Exchange the fault, or remove it; release the lines held by the former one."""
        former, self.live = self.live, live
        if former is not None:
            await self._pass(former.end())

    async def send(self, raw: bytes) -> None:
        """Write a message as the fault changes it. Raises `TargetGone` if the server is gone."""
        if self.live is None:
            await self.inner.send(raw)
        else:
            await self._pass(self.live.feed(raw, Direction.TO_TARGET))

    async def send_bytes(self, raw: bytes) -> None:
        """Write bytes unchanged, since faults do not apply to deliberately malformed messages."""
        async with self._write_lock:
            await self.inner.send_bytes(raw)

    async def receive(self) -> list[Line]:
        """Wait for at least one line that the fault lets pass. Raises `TargetGone` at the end."""
        while not self._ready:
            if self._gone is not None:
                raise self._gone
            await self._take(await self._come())
        lines, self._ready = self._ready, []
        return lines

    async def aclose(self) -> None:
        """Pass on the held lines, then close this side."""
        with contextlib.suppress(TargetGone):
            await self._pass(self.live.end() if self.live is not None else [])
        await self.inner.aclose()

    async def _come(self) -> list[Line]:
        """Return the server's next lines; [] after a silence with held lines, at the end, or when
        another task has queued lines.
        """
        held = self.live is not None and self.live.held_count
        bound = anyio.current_time() + self._quiet if held else math.inf
        lines: list[Line] = []
        with anyio.CancelScope(deadline=bound) as self._waiting:
            try:
                lines = await self.inner.receive()
            except TargetGone as gone:
                self._gone = gone
        quiet = self._waiting.cancelled_caught and anyio.current_time() >= bound
        self._waiting = None
        if self.live is not None and (quiet or self._gone is not None):
            with contextlib.suppress(TargetGone):
                await self._pass(self.live.end() if self._gone else self.live.release_on_silence())
        return lines

    async def _take(self, lines: list[Line]) -> None:
        for line in lines:
            if self.live is None:
                self._ready.append(line)
            else:
                passed = self.live.feed(line.raw, Direction.FROM_TARGET, damage=line.damage)
                await self._pass(passed)

    async def _pass(self, frames: list[Frame]) -> None:
        """Queue the lines for the client, wake its receiver, and write the lines for the server."""
        for frame in frames:
            if frame.direction is Direction.FROM_TARGET:
                self._ready.append(Line(frame.raw, frame.damage))
        if (self._ready or (self.live and self.live.held_count)) and self._waiting is not None:
            # A waiting receiver must see ready lines, and that lines are held.
            self._waiting.cancel()
        for frame in frames:
            if frame.direction is Direction.TO_TARGET:
                async with self._write_lock:
                    await self.inner.send(frame.raw)
