"""A relay between client and server that changes the messages of both."""

import contextlib
from typing import Protocol

import anyio

from harness.errors import TargetGone
from harness.faults.live.chain import LineFilter
from harness.faults.live.pieces import Piece
from harness.trace.frame import Direction, Frame, opposite


class Side(Protocol):
    """One end of a conversation; a message is a line or a WebSocket message."""

    async def receive(self) -> list[Piece]:
        """Wait for messages and return them, [] at the end of the stream."""
        ...

    async def send(self, frames: list[Frame]) -> None:
        """Write messages. Raises `TargetGone` if the reader is gone."""
        ...

    async def close(self) -> None:
        """Close the writing side. Idempotent."""
        ...


class Relay:
    """A relay of one conversation. After `quiet_seconds` of silence held lines are released.

    `from_client` and `from_server` raise `TargetGone` if the other side is gone.
    """

    def __init__(
        self, client: Side, server: Side, live: LineFilter, *, quiet_seconds: float
    ) -> None:
        self._sides = {Direction.FROM_TARGET: client, Direction.TO_TARGET: server}
        self._live = live
        self._quiet = quiet_seconds
        self._waiting: dict[Direction, list[Frame]] = {direction: [] for direction in Direction}
        self._writing = {direction: anyio.Lock() for direction in Direction}
        self._came = anyio.Event()
        self._has_server_ended = False

    def note_client_left(self) -> None:
        """Note that the client ends the conversation, unless the server did so first."""
        if not self._has_server_ended:
            self._live.note_client_left()

    async def from_client(self) -> None:
        """Pass on the client's messages until its end; then close the server's input."""
        await self._pump(Direction.TO_TARGET)
        self.note_client_left()
        await self._sides[Direction.TO_TARGET].close()

    async def from_server(self) -> None:
        """Pass on the server's messages until its end."""
        await self._pump(Direction.FROM_TARGET)
        self._has_server_ended = True

    async def watch_silence(self) -> None:
        """Release held lines after each silence; run until cancelled."""
        while True:
            self._came = anyio.Event()
            bound = self._quiet if self._live.held_count else None
            with anyio.move_on_after(bound) as wait:
                await self._came.wait()
            if wait.cancelled_caught:
                with contextlib.suppress(TargetGone):
                    await self._pass(self._live.release_on_silence())

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
        """Write each frame to its side, in the order of the filter."""
        for frame in frames:
            self._waiting[frame.direction].append(frame)
        # Only these directions: a client that reads slowly must not delay its own messages.
        for direction in {frame.direction for frame in frames}:
            await self._write(direction)

    async def _write(self, direction: Direction) -> None:
        while self._waiting[direction]:
            async with self._writing[direction]:
                frames, self._waiting[direction] = self._waiting[direction], []
                if frames:
                    await self._sides[direction].send(frames)
