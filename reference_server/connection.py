"""Connection to one client: reads its messages, writes those for it.

Requests are passed to the server (`Receiver`). Source: session-protocol
"What the service does"; framing and malformed lines are not shown there: a malformed line gets one
error, with its id if it has one, else `id: null`, and the connection stays open.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio

from harness.protocol.wire.rpc import ErrorCode, RequestId
from reference_server.envelope import (
    IncomingAnswer,
    IncomingNotification,
    IncomingRequest,
    Malformed,
    StrayAnswer,
    decode,
    encode_error,
)
from reference_server.outbox import Outbox
from reference_server.transport.base import Incoming, Oversized, Transport, Unusable

_log = logging.getLogger(__name__)

REQUESTS_AT_ONCE = 64
"""Unanswered requests at which a connection is not read until one is answered."""
ANSWERS_WAITING = 1 << 23
"""Queued bytes for the client above which its input is not read. Large enough that a client may
write thousands of requests before it reads an answer."""
FAREWELL_TIME = 2.0
"""Seconds without reading after which a client that has ended its input counts as gone.

When the server stops, also the seconds in which open requests are answered and written.
"""
ANSWER_TIME = 30.0
"""Seconds without a message to write after which a client that has ended its input is dropped."""


class Receiver(Protocol):
    """The destination of a connection's messages."""

    async def take_request(self, connection: "Connection", request: IncomingRequest) -> None:
        """Answer a request, or queue it; the next message is read when this returns."""
        ...

    def take_answer(self, connection: "Connection", answer: IncomingAnswer) -> None:
        """Take the client's answer to a request of the server."""
        ...


class Connection:
    """Connection to one client; `outbox` is the only way to send it anything.

    With `may_give_up`, for one of several clients, it is dropped if it reads too slowly.
    """

    def __init__(self, transport: Transport, *, may_give_up: bool = False) -> None:
        self._transport = transport
        self._pending = 0
        self._request_done = anyio.Event()
        self._reading = anyio.CancelScope()
        self._answering = anyio.CancelScope()
        self._farewell = anyio.CancelScope()
        self.input_read = anyio.Event()
        """Set once no more of the client's input is read."""
        self.ended = anyio.Event()
        """Set once nothing more can be sent."""
        self._hurried = False
        self.outbox = Outbox(transport, may_give_up=may_give_up)
        self.initialized = False
        self.in_use = False
        """True once a request was accepted: from then on it gets notifications of all threads."""
        self.client_name: str | None = None
        """The client's name in `initialize`."""

    async def run(self, receiver: Receiver, before_closing: Callable[[], Awaitable[None]]) -> None:
        """Serve until the client's input has ended, or until it no longer reads.

        `before_closing` is awaited once every request is answered; what it queues for this client
        is still written.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write, tasks.cancel_scope)
            tasks.start_soon(self._end_with_client, tasks.cancel_scope)
            tasks.start_soon(self._end_when_given_up, tasks.cancel_scope)
            with self._reading:
                await self._read(receiver)
            self.input_read.set()
            with self._answering:
                await self._wait_for_requests_below(1)
            await before_closing()
            self.outbox.close()
            self._farewell = tasks.cancel_scope
            if self._hurried:
                self._hurry()
        # Messages that are still queued are lost; stop all waiting for room in the queue.
        self.outbox.give_up()
        self.ended.set()

    def stop_reading(self) -> None:
        """Take no more input, as if the client had ended it, and close within `FAREWELL_TIME`."""
        self._hurried = True
        self._reading.cancel()
        self._hurry()

    def _hurry(self) -> None:
        for scope in (self._answering, self._farewell):
            scope.deadline = anyio.current_time() + FAREWELL_TIME

    def begin_request(self) -> None:
        """Count a request that waits in a lane."""
        self._pending += 1

    def end_request(self) -> None:
        """Note that a request that waited in a lane is answered."""
        self._pending -= 1
        request_done, self._request_done = self._request_done, anyio.Event()
        request_done.set()

    async def _write(self, scope: anyio.CancelScope) -> None:
        await self.outbox.run()
        # Everything is written, or the client reads no more.
        scope.cancel()

    async def _end_with_client(self, scope: anyio.CancelScope) -> None:
        """End the connection when the client has ended its input and has stopped reading too.

        As long as it reads, however slowly, it gets every answer.
        """
        async with anyio.create_task_group() as either:
            either.start_soon(self._cancel_after, self._transport.wait_for_end, either.cancel_scope)
            either.start_soon(self._cancel_after, self.input_read.wait, either.cancel_scope)
        while not self.outbox.gone:
            with anyio.move_on_after(ANSWER_TIME) as silence:
                await self.outbox.wait_until_queued()
            if silence.cancelled_caught:
                scope.cancel()
                return
            amount_taken = self._transport.amount_read
            with anyio.move_on_after(FAREWELL_TIME) as patience:
                await self.outbox.wait_until_written()
            if patience.cancelled_caught and self._transport.amount_read == amount_taken:
                scope.cancel()
                return

    async def _end_when_given_up(self, scope: anyio.CancelScope) -> None:
        await self.outbox.given_up.wait()
        # The current write, and the reason, may still reach the client.
        scope.deadline = anyio.current_time() + FAREWELL_TIME

    @staticmethod
    async def _cancel_after(
        wait: Callable[[], Awaitable[object]], scope: anyio.CancelScope
    ) -> None:
        await wait()
        scope.cancel()

    async def _read(self, receiver: Receiver) -> None:
        while messages := await self._transport.receive():
            for message in messages:
                await self._accept(message, receiver)
                await self._wait_for_requests_below(REQUESTS_AT_ONCE)
                await self.outbox.wait_for_room(ANSWERS_WAITING)

    async def _wait_for_requests_below(self, limit: int) -> None:
        while self._pending >= limit:
            await self._request_done.wait()

    async def _accept(self, message: Incoming, receiver: Receiver) -> None:
        if isinstance(message, Oversized):
            self._send_error(
                ErrorCode.INVALID_REQUEST, f"the line is longer than {message.limit} bytes"
            )
            return
        if isinstance(message, Unusable):
            self._send_error(ErrorCode.INVALID_REQUEST, message.words)
            return
        match decode(message):
            case IncomingRequest() as request:
                await receiver.take_request(self, request)
            case IncomingNotification(method):
                # `initialized` asks for nothing, and unknown ones must be ignored (JSON-RPC 2.0).
                _log.debug("notification %s", method)
            case IncomingAnswer() as answer:
                receiver.take_answer(self, answer)
            case StrayAnswer(words):
                _log.warning("an answer whose id is not that of a request: %s", words)
            case Malformed(code, words, usable_id):
                self._send_error(code, words, usable_id)

    def _send_error(
        self, code: ErrorCode, words: str, request_id: "RequestId | None" = None
    ) -> None:
        self.outbox.put(encode_error(request_id, code, words))
