"""Recipients of notifications: the subscribers of a thread, and every connection.

Each message is encoded once for all. A turn runs at the pace of its fastest reader: the others
never wait for a slow one. The specification does not show which notifications go to every
connection: here, as in the shipping server, those that change a list of threads (started, archived,
closed, named, and the like), since a client shows that list whoever has changed it.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Iterable

import anyio
import anyio.lowlevel

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.methods import BY_PARAMS
from reference_server.deltas import DeltaLine
from reference_server.envelope import encode_aside, encode_notification
from reference_server.outbox import Outbox

WORK_AT_A_TIME = 0.002
"""Seconds of work after which other tasks may run, and so the longest wait of a delta before it is
written, together with the ones after it."""


class Subscribers:
    """The subscribers of one thread; `everyone` gets notifications of some methods too."""

    def __init__(self, everyone: "Everyone | None" = None) -> None:
        self._everyone = everyone
        self._outboxes: list[Outbox] = []
        self._changed = anyio.Event()
        self._paused = 0.0

    def add(self, outbox: Outbox) -> bool:
        """Subscribe a connection; return False if it is subscribed or its client is gone."""
        if outbox in self._outboxes or outbox.gone:
            return False
        self._outboxes.append(outbox)
        self._notify_change()
        return True

    def remove(self, outbox: Outbox) -> bool:
        """Unsubscribe a connection and return whether it was subscribed."""
        if outbox not in self._outboxes:
            return False
        self._outboxes.remove(outbox)
        self._notify_change()
        return True

    def _notify_change(self) -> None:
        # A wait for room at the earlier subscribers may be over.
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    @property
    def outboxes(self) -> list[Outbox]:
        """Return the outboxes of the current subscribers."""
        return list(self._outboxes)

    def has(self, outbox: Outbox) -> bool:
        """Return whether a connection is subscribed."""
        return outbox in self._outboxes

    def notify(self, params: WireModel) -> None:
        """Send the subscribers a notification, whose method follows from the params' class."""
        method = BY_PARAMS[type(params)]
        self.send(encode_notification(method, params))
        if self._everyone is not None and method in self._everyone.methods:
            self._everyone.notify_others(encode_aside(method, params), self._outboxes)

    def send(self, message: bytes) -> None:
        """Send the subscribers one encoded message."""
        for outbox in self._outboxes:
            outbox.put(message)

    def send_delta(self, line: DeltaLine, text: str) -> None:
        """Send the subscribers one piece of text, as a delta."""
        message = line.with_text(text)
        for outbox in self._outboxes:
            outbox.put_delta(line.prefix, message)

    @property
    def are_full(self) -> bool:
        """Return whether there are subscribers and none has room."""
        for outbox in self._outboxes:
            if not outbox.is_full:
                return False
        return bool(self._outboxes)

    async def wait_for_room(self) -> None:
        """Wait until the queue of at least one subscriber has room, if there are subscribers.

        So the work slows down to the fastest reader. Even with room, other tasks run after
        WORK_AT_A_TIME seconds, so that a model that sends events fast cannot starve them.
        """
        while self.are_full:
            await self._wait_for_first_room()
        if time.monotonic() - self._paused > WORK_AT_A_TIME:
            await anyio.lowlevel.checkpoint()
            self._paused = time.monotonic()

    async def _wait_for_first_room(self) -> None:
        async with anyio.create_task_group() as waits:

            async def first(wait: Callable[[], Awaitable[object]]) -> None:
                await wait()
                waits.cancel_scope.cancel()

            waits.start_soon(first, self._changed.wait)
            for outbox in self._outboxes:
                waits.start_soon(first, outbox.wait_for_room)


class Everyone:
    """Every connection that has sent a valid request; `outboxes` returns their outboxes.

    `methods` are notifications about a thread that a dialect sends everyone, not only subscribers.
    """

    def __init__(
        self,
        outboxes: Callable[[], Iterable[Outbox]],
        methods: Collection[str] = (),
    ) -> None:
        self._outboxes = outboxes
        self.methods = methods

    def notify(self, params: WireModel) -> None:
        """Send everyone a notification, whose method follows from the params' class."""
        message = encode_notification(BY_PARAMS[type(params)], params)
        for outbox in self._outboxes():
            outbox.put(message)

    def notify_others(self, message: bytes, subscribers: Collection[Outbox]) -> None:
        """Send one encoded message to everyone but these subscribers."""
        for outbox in self._outboxes():
            if outbox not in subscribers:
                outbox.put(message)
