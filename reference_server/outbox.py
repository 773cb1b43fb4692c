"""The only writer of a connection: messages are written in the order in which they are put.

Here lives the queue between all that sends messages and the transport. Messages put during a write
go out together in the next one. Where the queue is full, producers are asked to wait (`room`); no
message is ever dropped.
"""

from collections import deque

import anyio

from reference_server.transport.base import PeerGone, Transport

HIGH_WATER = 1 << 20
"""Queued bytes above which producers are asked to wait."""


class Outbox:
    """The queue of one connection."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._wake = anyio.Event()
        self._written = anyio.Event()
        self._closing = False
        self.gone = False
        """True once the peer no longer reads; everything put from then on is discarded."""

    def put(self, message: bytes) -> None:
        """Queue one encoded message; never waits."""
        if self.gone:
            return
        if not self._queue:
            self._wake.set()
        self._queue.append(message)
        self._size += len(message)

    @property
    def is_full(self) -> bool:
        """Whether producers are asked to wait."""
        return self._size > HIGH_WATER and not self.gone

    async def room(self) -> None:
        """Wait until less than `HIGH_WATER` bytes are queued."""
        while self.is_full:
            await self._written.wait()

    async def queued(self) -> None:
        """Wait until something is queued."""
        while not self._size and not self.gone:
            await self._wake.wait()

    async def written(self) -> None:
        """Wait until everything queued so far is written."""
        while self._size and not self.gone:
            await self._written.wait()

    def close(self) -> None:
        """Let `run` return once everything queued is written."""
        self._closing = True
        self._wake.set()

    async def run(self) -> None:
        """Write until closed and empty, or until the peer is gone."""
        try:
            while True:
                await self._wake.wait()
                if not self._queue:
                    return
                self._wake = anyio.Event()
                await self._flush()
                if self._closing or self._queue:
                    self._wake.set()
        except PeerGone:
            self.give_up()

    def give_up(self) -> None:
        """Take the peer for gone: write nothing more, and end all waiting for room."""
        self.gone = True
        self._queue.clear()
        self._written.set()

    async def _flush(self) -> None:
        batch = list(self._queue)
        self._queue.clear()
        await self._transport.send(batch)
        self._size -= sum(map(len, batch))
        written, self._written = self._written, anyio.Event()
        written.set()
