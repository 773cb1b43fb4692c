"""The only writer of a connection: messages are written in the order in which they are put.

Messages put during a write go out together in the next one. If the queue is full, a producer waits
(`wait_for_room`), unless its other clients read faster: then waiting deltas are joined, and a
client that lags too far behind is dropped. Until then it gets every message.
"""

from collections import deque
from typing import NamedTuple

import anyio
import anyio.lowlevel

from reference_server.deltas import MERGED_LIMIT, MergedDeltas
from reference_server.envelope import encode_error
from reference_server.transport.base import PeerGone, Transport

HIGH_WATER = 1 << 20
"""Queued bytes above which producers are asked to wait, and deltas are joined."""
WAITING_LIMIT = 1 << 24
"""Queued bytes above which a client is dropped if `may_give_up`.

Large responses, which it requested, do not count; nor does the largest notification, since a single
one is never too much.
"""
BATCH = 1 << 18
"""Bytes after which a write takes no further message; waiting deltas can still be joined."""
_LARGE = 1 << 16
OVERLOADED = -32001
"""Error code of overload; not shown in the specification, taken from the shipping server."""
TOO_SLOW = (
    f"too slow: more than {WAITING_LIMIT >> 20} MiB of notifications wait to be read; connect "
    "again, and thread/resume shows what was missed"
)


class _LargeMessage(NamedTuple):
    """A large queued message; `end`: bytes put on the connection up to and including it."""

    end: int
    size: int
    is_answer: bool


class Outbox:
    """The queue of one connection. With `may_give_up` a client that lags too far is dropped."""

    def __init__(self, transport: Transport, *, may_give_up: bool = False) -> None:
        self._transport = transport
        self._may_give_up = may_give_up
        self._queue: deque[bytes | MergedDeltas] = deque()
        self._size = 0
        self._total_put = 0
        self._large: deque[_LargeMessage] = deque()
        self._putting_answer = False
        self._merging: dict[bytes, MergedDeltas] = {}
        self._wake = anyio.Event()
        self._written = anyio.Event()
        self._closing = False
        self.gone = False
        """True once the peer no longer reads; everything put from then on is discarded."""
        self.given_up = anyio.Event()
        """Set when the client was too slow; it still gets an error with the reason."""

    def put(self, message: bytes) -> None:
        """Queue one encoded message; never waits."""
        if self.gone:
            return
        if self._merging:
            # A delta must not be joined to one that stands before this message.
            self._merging.clear()
        size = len(message)
        self._append(message, size)
        if size > _LARGE:
            self._forget_written()
            self._large.append(_LargeMessage(self._total_put, size, self._putting_answer))

    def put_delta(self, prefix: bytes, line: bytes) -> None:
        """Queue the line of a delta; above HIGH_WATER it is joined to a waiting one."""
        if self._size <= HIGH_WATER:
            self.put(line)
            return
        if self.gone:
            return
        merged = self._merging.get(prefix)
        if merged is None or merged.size + len(line) > MERGED_LIMIT:
            merged = self._merging[prefix] = MergedDeltas(prefix, line)
            self._append(merged, merged.size)
        else:
            self._count(merged.add(line))

    def put_answer(self, message: bytes) -> None:
        """Queue the response to a request; a large one does not count against a slow client."""
        self._putting_answer = True
        try:
            self.put(message)
        finally:
            self._putting_answer = False

    def _append(self, message: bytes | MergedDeltas, size: int) -> None:
        if self._size > WAITING_LIMIT and self._may_give_up and self._lags_too_far():
            self._drop_client()
            return
        if not self._queue:
            self._wake.set()
        self._queue.append(message)
        self._count(size)

    def _count(self, size: int) -> None:
        self._size += size
        self._total_put += size

    def _forget_written(self) -> None:
        written = self._total_put - self._size
        while self._large and self._large[0].end <= written:
            self._large.popleft()

    def _lags_too_far(self) -> bool:
        self._forget_written()
        asked_for = sum(one.size for one in self._large if one.is_answer)
        largest = max((one.size for one in self._large if not one.is_answer), default=0)
        return self._size - asked_for - largest > WAITING_LIMIT

    def _drop_client(self) -> None:
        """Discard all queued and later messages, send the client the reason, and end."""
        self.gone = True
        self._queue.clear()
        self._queue.append(encode_error(None, OVERLOADED, TOO_SLOW))
        self.given_up.set()
        self._wake_all()
        self.close()

    @property
    def is_full(self) -> bool:
        """Return whether producers should wait (`wait_for_room`)."""
        return self._size > HIGH_WATER and not self.gone

    async def wait_for_room(self, limit: int = HIGH_WATER) -> None:
        """Wait until at most `limit` bytes are queued, or the peer is gone."""
        while self._size > limit and not self.gone:
            await self._written.wait()

    async def wait_until_queued(self) -> None:
        """Wait until a message is queued, or the peer is gone."""
        while not self._size and not self.gone:
            await self._wake.wait()

    async def wait_until_written(self) -> None:
        """Wait until everything queued is written, or the peer is gone."""
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
                # Messages put a moment later join the same write, which halves their number.
                await anyio.lowlevel.checkpoint()
                if not self._queue:
                    return
                self._wake = anyio.Event()
                await self._flush()
                if self._closing or self._queue:
                    self._wake.set()
        except PeerGone:
            self.give_up()

    def give_up(self) -> None:
        """Treat the peer as gone: discard the queue, write nothing more, end all waits for room."""
        self.gone = True
        self._queue.clear()
        self._written.set()

    async def _flush(self) -> None:
        batch: list[bytes] = []
        size = 0
        while self._queue and size < BATCH:
            message = self._queue.popleft()
            batch.append(message if isinstance(message, bytes) else message.line())
            size += len(batch[-1])
        # Deltas cannot be joined to one that is being written.
        self._merging.clear()
        await self._transport.send(batch)
        self._size -= size
        self._wake_all()

    def _wake_all(self) -> None:
        written, self._written = self._written, anyio.Event()
        written.set()
