"""The client's side of one connection: ids, requests and their answers, server requests.

One function sends every request.
"""

import json
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel

from harness.client.inbox import Inbox
from harness.client.transport.base import Transport
from harness.errors import TargetGone
from harness.trace.correlation import Id, as_id, same_id
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.recorder import Recorder, TraceFull

# Made once; `json.dumps` would make a new one for each message.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _encode(message: dict[str, Any]) -> bytes:
    try:
        return _ENCODER.encode(message).encode()
    except UnicodeEncodeError:
        # The message holds half of a surrogate pair, such as the id of a server's request.
        return json.dumps(message).encode()


class Peer:
    """A connected client. Run `pump` in a task group; it ends when the connection does.

    Its requests have ids from `first_id` on.
    """

    def __init__(
        self, transport: Transport, recorder: Recorder, *, name: str = "c1", first_id: int = 1
    ) -> None:
        self.transport = transport
        self.recorder = recorder
        self.name = name
        self.inbox = Inbox()
        self.questions: dict[Id, Frame] = {}
        self.overflow: str = ""
        self.sends_slices = False
        """True if each message is written byte by byte, as a slow line would carry it."""
        self.was_slow = False
        """True once its client has stopped reading."""
        self.when_ended: Callable[[], None] | None = None
        """Called when the connection has ended, after its last message."""
        self.ended = anyio.Event()
        self._next_id = first_id - 1
        self._may_read = anyio.Event()
        self._may_read.set()
        self._slices_lock = anyio.Lock()

    def begin(self, recorder: Recorder, *, name: str = "c1") -> None:
        """Start a new trace on this connection, in which it has this name."""
        self.recorder = recorder
        self.name = name
        self.was_slow, self.when_ended = False, None
        self.sends_slices = False
        self.inbox.restart()
        self.questions.clear()

    def set_reading(self, *, active: bool) -> None:
        """Stop or resume reading the server's output, to simulate a slow client.

        A chunk that the transport has already received is held back too.
        """
        if not active and self._may_read.is_set():
            self.was_slow = True
            self._may_read = anyio.Event()
        elif active:
            self._may_read.set()

    async def pump(self) -> None:
        """Receive until the connection ends or the trace is full."""
        try:
            while True:
                lines = await self.transport.receive()
                await self._may_read.wait()
                for line in lines:
                    frame = self.recorder.record(
                        line.raw,
                        Direction.FROM_TARGET,
                        connection=self.name,
                        damage=line.damage,
                    )
                    identifier = as_id(frame.id)
                    if frame.kind is Kind.REQUEST and identifier is not None:
                        self.questions[identifier] = frame
                    self.inbox.put(frame)
                # A server that floods would otherwise keep everything else from running.
                await anyio.lowlevel.checkpoint()
        except TargetGone:
            pass
        except TraceFull as full:
            self.overflow = str(full)
        finally:
            if self.when_ended is not None:
                self.when_ended()
            self.inbox.close()
            self.ended.set()

    async def request(self, method: str, params: Any, *, deliberate: bool = False) -> Frame:
        """Send a request and wait for its answer, a result or an error.

        `deliberate` marks params that are wrong on purpose: they must still be answered. There is
        no time limit: the caller sets one. Raises `TargetGone` if the connection ends.
        """
        request = await self.send_request(method, params, deliberate=deliberate)
        return await self.wait_for_answer(request)

    async def send_request(self, method: str, params: Any, *, deliberate: bool = False) -> Frame:
        """Send a request without waiting; return its frame. Raises `TargetGone`, as all sending."""
        self._next_id += 1
        message = {"method": method, "id": self._next_id, "params": params}
        return await self._send(message, deliberate=deliberate)

    async def wait_for_answer(self, request: Frame) -> Frame:
        """Return the answer to a request that was sent. Raises `TargetGone` if none can come."""
        request_id = request.id

        def matches(frame: Frame) -> bool:
            return frame.kind in (Kind.RESPONSE, Kind.ERROR) and same_id(frame.id, request_id)

        return await self.inbox.wait(matches)

    async def notify(
        self, method: str, params: Any | None = None, *, deliberate: bool = False
    ) -> Frame:
        """Send a notification; `deliberate` as for a request."""
        message: dict[str, Any] = {"method": method}
        if params is not None:
            message["params"] = params
        return await self._send(message, deliberate=deliberate)

    async def answer(self, question: Frame, result: Any, *, deliberate: bool = False) -> Frame:
        """Answer a server request with a result; `deliberate` as for a request."""
        self.questions.pop(question.id, None)
        return await self._send({"id": question.id, "result": result}, deliberate=deliberate)

    async def refuse(self, question: Frame, message: str, *, code: int = -32601) -> Frame:
        """Answer a server request with an error: the safe answer to one that is unknown."""
        self.questions.pop(question.id, None)
        error = {"code": code, "message": message}
        return await self._send({"id": question.id, "error": error})

    async def send_raw(self, raw: bytes) -> Frame:
        """Send bytes as they are, in a frame that is marked deliberate."""
        frame = self._record(raw.rstrip(b"\n"), deliberate=True)
        await self._write(raw, is_message=False)
        return frame

    async def _send(self, message: dict[str, Any], *, deliberate: bool = False) -> Frame:
        raw = _encode(message)
        # Recorded first: an answer can arrive before the write returns.
        frame = self._record(raw, deliberate=deliberate)
        await self._write(raw, is_message=True)
        return frame

    def _record(self, raw: bytes, *, deliberate: bool) -> Frame:
        if self.inbox.closed:
            raise TargetGone("the server closed the connection")
        try:
            return self.recorder.record(
                raw, Direction.TO_TARGET, connection=self.name, deliberate=deliberate
            )
        except TraceFull as full:
            self.overflow = str(full)
            raise TargetGone(self.overflow) from full

    async def _write(self, raw: bytes, *, is_message: bool) -> None:
        try:
            if self.sends_slices:
                async with self._slices_lock:
                    for byte in raw + b"\n" * is_message:
                        await self.transport.send_bytes(bytes([byte]))
                return
            await (self.transport.send(raw) if is_message else self.transport.send_bytes(raw))
        except TargetGone as error:
            raise TargetGone("the server closed its input") from error
