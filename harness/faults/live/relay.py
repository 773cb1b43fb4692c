"""A relay between client and server that reads, changes and writes what both say."""

import contextlib
from typing import Protocol

import anyio

from harness.errors import TargetGone
from harness.faults.live.chain import AtWork
from harness.faults.live.pieces import Piece
from harness.trace.frame import Direction, Frame, opposite


class Side(Protocol):
    """One end of a conversation, where a message is a line, or a message of a WebSocket."""

    async def receive(self) -> list[Piece]:
        """Some messages, none at the end."""
        ...

    async def send(self, frames: list[Frame]) -> None:
        """Write messages. Raises `TargetGone` where nobody reads them any more."""
        ...

    async def close(self) -> None:
        """Nothing more will be written. Idempotent."""
        ...


class Relay:
    """One conversation. `quiet` are the seconds of silence after which held lines go on.

    Raises `TargetGone` from `from_client` and `from_server` where the other side is gone.
    """

    def __init__(self, client: Side, server: Side, live: AtWork, *, quiet: float) -> None:
        self._sides = {Direction.FROM_TARGET: client, Direction.TO_TARGET: server}
        self._live = live
        self._quiet = quiet
        self._waiting: dict[Direction, list[Frame]] = {one: [] for one in Direction}
        self._writing = {one: anyio.Lock() for one in Direction}
        self._came = anyio.Event()

    async def from_client(self) -> None:
        """Pass on what the client says, until its end; then the server's input is closed."""
        await self._pump(Direction.TO_TARGET)
        await self._sides[Direction.TO_TARGET].close()

    async def from_server(self) -> None:
        """Pass on what the server says, until its end."""
        await self._pump(Direction.FROM_TARGET)

    async def mind_silence(self) -> None:
        """Let go of what is held when nothing comes; runs until it is cancelled."""
        while True:
            self._came = anyio.Event()
            bound = self._quiet if self._live.held else None
            with anyio.move_on_after(bound) as wait:
                await self._came.wait()
            if wait.cancelled_caught:
                with contextlib.suppress(TargetGone):
                    await self._pass(self._live.quiet())

    async def _pump(self, direction: Direction) -> None:
        source = self._sides[opposite(direction)]
        while pieces := await source.receive():
            passed = [
                frame
                for piece in pieces
                for frame in self._live.feed(piece.raw, direction, damage=piece.damage)
            ]
            self._came.set()
            await self._pass(passed)
        await self._pass(self._live.end())

    async def _pass(self, frames: list[Frame]) -> None:
        """Write each frame to its side, in the order in which frames were given out."""
        for frame in frames:
            self._waiting[frame.direction].append(frame)
        # No other direction: a client that reads slowly must not keep back what it says.
        for direction in {frame.direction for frame in frames}:
            await self._write(direction)

    async def _write(self, direction: Direction) -> None:
        while self._waiting[direction]:
            async with self._writing[direction]:
                frames, self._waiting[direction] = self._waiting[direction], []
                if frames:
                    await self._sides[direction].send(frames)
