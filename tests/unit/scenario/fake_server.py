"""A fake server in memory, for tests of the client side.

It answers from a table of methods and sends only messages that a test tells it to send.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import ByteStream

from harness.client.peer import Peer
from harness.client.transport.jsonl import LineSplitter
from harness.client.transport.streams import LineTransport, memory_pair
from harness.trace.connection_ledgers import ConnectionLedgers
from harness.trace.recorder import Recorder

Json = dict[str, Any]
Answer = Callable[[Json], Json | None]
THREAD, TURN = "thr_1", "turn_1"


class FakeServer:
    """The server. `answers` maps a method to a function of its params; None sends no answer."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.received: list[Json] = []
        self.answers: dict[str, Answer] = {
            "thread/start": lambda _: {"thread": {"id": THREAD}},
            "turn/start": lambda _: {"turn": {"id": TURN, "status": "inProgress", "items": []}},
            "turn/interrupt": lambda _: {},
            "thread/read": lambda _: {"thread": {"id": THREAD}},
        }
        # What to say after the answer to a method.
        self.then: dict[str, list[Json]] = {}
        # What to say when one of its own requests was answered, by its id.
        self.answered: dict[int, list[Json]] = {}
        # The method at which it leaves without a word.
        self.leave_at = ""

    async def run(self) -> None:
        splitter = LineSplitter()
        try:
            while True:
                for line in splitter.feed(await self._stream.receive()):
                    await self._take(json.loads(line.raw))
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    async def _take(self, message: Json) -> None:
        self.received.append(message)
        method = message.get("method", "")
        if not method:
            for one in self.answered.get(message.get("id", -1), []):
                await self.say(one)
        if "id" not in message or not method:
            return
        if method == self.leave_at:
            await self.leave()
            return
        answer = self.answers.get(method, lambda _: None)(message.get("params") or {})
        if answer is not None:
            key = "error" if "code" in answer else "result"
            await self.say({"id": message["id"], key: answer})
        for notification in self.then.get(method, []):
            await self.say(notification)

    async def say(self, message: Json) -> None:
        await self.write(json.dumps(message).encode() + b"\n")

    async def write(self, data: bytes) -> None:
        await self._stream.send(data)

    async def leave(self) -> None:
        """Close the output, as the end of the process would."""
        await self._stream.aclose()

    def asked(self, method: str) -> list[Json]:
        return [one["params"] for one in self.received if one.get("method") == method]


@asynccontextmanager
async def connected(**bounds: Any) -> AsyncGenerator[tuple[Peer, FakeServer, ConnectionLedgers]]:
    """Yield a client connected to a fake server; `bounds` are arguments of the recorder."""
    near, far = memory_pair(1 << 16)
    recorder, owed = Recorder(**bounds), ConnectionLedgers()
    recorder.listeners.append(owed.feed)
    recorder.mark_listeners.append(owed.feed_mark)
    peer, server = Peer(LineTransport(near, near), recorder), FakeServer(far)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.pump)
            tasks.start_soon(server.run)
            yield peer, server, owed
            tasks.cancel_scope.cancel()
    finally:
        for stream in (near, far):
            await getattr(stream, "_stream").aclose()  # noqa: B009


@asynccontextmanager
async def further(peer: Peer, name: str = "c2") -> AsyncGenerator[tuple[Peer, FakeServer]]:
    """Yield another client of the same conversation, connected to a fake server of its own."""
    near, far = memory_pair(1 << 16)
    another, server = Peer(LineTransport(near, near), peer.recorder, name=name), FakeServer(far)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(another.pump)
            tasks.start_soon(server.run)
            yield another, server
            tasks.cancel_scope.cancel()
    finally:
        for stream in (near, far):
            await getattr(stream, "_stream").aclose()  # noqa: B009


def started(turn: str = TURN) -> Json:
    params = {"threadId": THREAD, "turn": {"id": turn, "status": "inProgress", "items": []}}
    return {"method": "turn/started", "params": params}


def completed(turn: str = TURN, status: str = "completed", error: Any = None) -> Json:
    body = {"id": turn, "status": status, "items": [], "error": error}
    return {"method": "turn/completed", "params": {"threadId": THREAD, "turn": body}}


def thread_started() -> Json:
    return {"method": "thread/started", "params": {"thread": {"id": THREAD}}}
