"""The connections that are sent what happens on a thread, and all that are sent news of threads.

Here live the sets of their outboxes. Each message is encoded once for all of them. Which
notifications go to every connection is not shown in the document: here, as in the shipping server,
those after which a list of threads is another (started, archived, closed, named, and the like),
since a client shows that list whoever has changed it.
"""

import time
from collections.abc import Callable, Iterable

import anyio.lowlevel

from harness.wire.base import WireModel
from harness.wire.methods import BY_PARAMS
from reference_server.envelope import encode_notification
from reference_server.outbox import Outbox

WORK_AT_A_TIME = 0.002
"""Seconds of work after which other tasks may run. A delta waits at most so long before it is
written, together with the ones after it."""


class Subscribers:
    """The subscribers of one thread."""

    def __init__(self) -> None:
        self._outboxes: list[Outbox] = []
        self._paused = 0.0

    def add(self, outbox: Outbox) -> None:
        """Subscribe a connection, unless it is already, or its client has left."""
        if outbox not in self._outboxes and not outbox.gone:
            self._outboxes.append(outbox)

    def remove(self, outbox: Outbox) -> bool:
        """Unsubscribe a connection; tells whether it was subscribed."""
        if outbox not in self._outboxes:
            return False
        self._outboxes.remove(outbox)
        return True

    @property
    def outboxes(self) -> list[Outbox]:
        """Who is subscribed now."""
        return list(self._outboxes)

    def has(self, outbox: Outbox) -> bool:
        """Tell whether a connection is subscribed."""
        return outbox in self._outboxes

    def notify(self, params: WireModel) -> None:
        """Send a notification; its method is the one of the params' class."""
        self.send(encode_notification(BY_PARAMS[type(params)], params))

    def send(self, message: bytes) -> None:
        """Send one encoded message."""
        for outbox in self._outboxes:
            outbox.put(message)

    async def room(self) -> None:
        """Wait until every subscriber has room, so that a slow reader slows the work down.

        Now and then it lets other tasks run even if there is room: a model that sends events faster
        than they are handled must not keep other tasks from running.
        """
        for outbox in [one for one in self._outboxes if one.is_full]:
            await outbox.room()
        if time.monotonic() - self._paused > WORK_AT_A_TIME:
            await anyio.lowlevel.checkpoint()
            self._paused = time.monotonic()


class Everyone:
    """Every connection that has sent a request; `outboxes` gives them."""

    def __init__(self, outboxes: Callable[[], Iterable[Outbox]]) -> None:
        self._outboxes = outboxes

    def notify(self, params: WireModel) -> None:
        """Send a notification; its method is the one of the params' class."""
        message = encode_notification(BY_PARAMS[type(params)], params)
        for outbox in self._outboxes():
            outbox.put(message)
