"""A client of a reference server in the same process, and functions that start both."""

import json
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from model_side import ModelSide, Refused, Reply

from reference_server.config.home import Home
from reference_server.config.model import Config, Provider
from reference_server.connection import Connection
from reference_server.server import Server, running_server
from reference_server.transport.base import MemoryTransport, Oversized

Message = dict[str, Any]
BOUND = 20.0


@dataclass
class Peer:
    """A client; `seen` are all received messages, in order."""

    transport: MemoryTransport
    server: Server
    side: ModelSide
    seen: list[Message] = field(default_factory=list)
    _next_id: int = 0

    async def serve(self, *, then_stop: bool = False) -> None:
        """Serve this client until it disconnects."""
        await self.server.serve(Connection(self.transport), then_stop=then_stop)
        self.transport.end_output()

    async def send_line(self, line: bytes | Oversized) -> None:
        await self.transport.put(line)

    async def send(self, method: str, params: Any = None, **extra: Any) -> int:
        self._next_id += 1
        given = {} if params is None else {"params": params}
        await self.send_line(
            json.dumps({"id": self._next_id, "method": method, **given, **extra}).encode()
        )
        return self._next_id

    async def receive(self) -> Message:
        with anyio.fail_after(BOUND):
            self.seen.append(json.loads(await self.transport.take()))
        return self.seen[-1]

    async def until(self, wanted: Callable[[Message], bool]) -> Message:
        for message in self.seen:
            if wanted(message):
                return message
        while not wanted(message := await self.receive()):
            pass
        return message

    async def answer(self, request_id: int) -> Message:
        return await self.until(lambda m: m.get("id") == request_id and "method" not in m)

    async def request(self, method: str, params: Any = None) -> Message:
        return await self.answer(await self.send(method, params))

    async def event(self, method: str, **fields: Any) -> Message:
        """Wait for a notification whose params have these fields; return its params."""
        found = await self.until(
            lambda m: (
                m.get("method") == method
                and all(m["params"].get(name) == value for name, value in fields.items())
            )
        )
        return found["params"]

    async def asked(self, kind: str = "commandExecution", *, after: int = -1) -> Message:
        """Wait for an approval request with an id greater than `after` and return it."""
        method = f"item/{kind}/requestApproval"
        return await self.until(lambda m: m.get("method") == method and m["id"] > after)

    async def decide(self, question: Message, decision: Any) -> None:
        answer = {"id": question["id"], "result": {"decision": decision}}
        await self.send_line(json.dumps(answer).encode())

    async def start_thread(self, **params: Any) -> str:
        return (await self.request("thread/start", params))["result"]["thread"]["id"]

    async def start_turn(self, thread: str, text: str = "hi", **params: Any) -> str:
        given = {"threadId": thread, "input": [{"type": "text", "text": text}], **params}
        return (await self.request("turn/start", given))["result"]["turn"]["id"]

    async def turn_end(self, turn: str) -> Message:
        found = await self.until(
            lambda m: m.get("method") == "turn/completed" and m["params"]["turn"]["id"] == turn
        )
        return found["params"]["turn"]

    async def run_turn(self, thread: str, text: str = "hi", **params: Any) -> Message:
        return await self.turn_end(await self.start_turn(thread, text, **params))

    async def drain(self) -> None:
        """Read to the end of the server's output."""
        with anyio.fail_after(BOUND):
            try:
                while True:
                    self.seen.append(json.loads(await self.transport.take()))
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                return

    def methods(self, *, start: int = 0) -> list[str]:
        return [m.get("method", "answer") for m in self.seen[start:]]

    def params_of(self, method: str) -> list[Message]:
        return [m["params"] for m in self.seen if m.get("method") == method]

    def told_model(self, call: int = -1) -> str:
        """Return the tool output that is the last input of the model's call number `call`."""
        return self.side.bodies[call]["input"][-1]["output"]

    def completed_items(self, kind: str) -> list[Message]:
        items = [p["item"] for p in self.params_of("item/completed")]
        return [item for item in items if item["type"] == kind]


def config(**provider: Any) -> Config:
    fields: dict[str, Any] = {
        "base_url": "http://model.invalid/v1",
        "request_max_retries": 0,
        **provider,
    }
    fields.setdefault("stream_max_retries", 0)
    return Config(
        model="test-model",
        model_provider="mock",
        providers={"mock": Provider("mock", **fields)},
    )


@asynccontextmanager
async def session(
    home: Path,
    replies: Sequence[Reply | Refused] = (),
    *,
    settings: Config | None = None,
    requires_initialize: bool = False,
    clock: Callable[[], float] = time.time,
) -> AsyncGenerator[Peer]:
    """Run a server in this process and yield a client of it."""
    side = ModelSide(list(replies))
    transport = MemoryTransport()
    async with running_server(
        Home(home),
        settings or config(),
        model_transport=side.transport,
        requires_initialize=requires_initialize,
        clock=clock,
    ) as server:
        peer = Peer(transport, server, side)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(peer.serve, then_stop=True))
                try:
                    yield peer
                finally:
                    transport.end_input()
                    await peer.drain()
        finally:
            # Also where a test has failed: the next one would be told of streams left open.
            transport.close()


@asynccontextmanager
async def another_client(first: Peer, name: str | None = None) -> AsyncGenerator[Peer]:
    """Yield a further client of the server of `first`; with a name, after `initialize`."""
    transport = MemoryTransport()
    peer = Peer(transport, first.server, first.side)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(peer.serve)
        if name is not None:
            await peer.request("initialize", {"clientInfo": {"name": name}})
        try:
            yield peer
        finally:
            transport.end_input()
            await peer.drain()
    transport.close()
