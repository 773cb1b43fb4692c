"""A stage (server that plays scenarios to clients) in this process, and clients over sockets."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import websockets

from harness.play.client_tests.connection import ConnectionResult
from harness.play.client_tests.scenario_choice import Choice, load_choice
from reference_server.client_tests.stage import Bounds, Stage
from reference_server.reception import Reception
from reference_server.transport.addresses import TcpAddress, UnixAddress
from reference_server.transport.handshake import Admission
from reference_server.transport.listener import open_listener

BOUND = 20.0
GREETING = """\
title: A greeting
model:
  - reply:
      - message: {deltas: ["Hel", "lo"]}
"""


@dataclass
class Client:
    """A client that waits for each response; `heard` are all received messages."""

    line: Any
    heard: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    ids: int = 0

    async def say(self, message: Mapping[str, Any] | str) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        await self.line.send(text)

    async def hear(self) -> dict[str, Any]:
        with anyio.fail_after(BOUND):
            self.heard.append(json.loads(await self.line.recv()))
        return self.heard[-1]

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request; return its result or its error."""
        self.ids += 1
        await self.say({"id": self.ids, "method": method, "params": params})
        while True:
            one = await self.hear()
            if one.get("id") == self.ids and "method" not in one:
                said: dict[str, Any] = one["result"] if "result" in one else one["error"]
                return said

    async def until(self, method: str) -> dict[str, Any]:
        while (one := await self.hear()).get("method") != method:
            pass
        return one

    async def begin(self, **params: Any) -> str:
        """Do the handshake and start a thread; return its id."""
        await self.ask("initialize", clientInfo={"name": "test", "version": "1"})
        await self.say({"method": "initialized"})
        return (await self.ask("thread/start", **params))["thread"]["id"]

    async def turn(self, thread: str, **params: Any) -> None:
        """Start a turn, without waiting for its end."""
        await self.ask(
            "turn/start", threadId=thread, input=[{"type": "text", "text": "hi"}], **params
        )

    async def play(self, **params: Any) -> dict[str, Any]:
        """Start a thread and a turn, wait for the turn's end, and return the turn."""
        await self.turn(await self.begin(**params))
        return (await self.until("turn/completed"))["params"]["turn"]


@dataclass
class OverLines:
    """A connection over JSON Lines, with the interface of a WebSocket."""

    stream: anyio.abc.SocketStream
    held: bytes = b""

    async def send(self, text: str) -> None:
        await self.stream.send(text.encode() + b"\n")

    async def recv(self) -> bytes:
        while b"\n" not in self.held:
            self.held += await self.stream.receive()
        line, _, self.held = self.held.partition(b"\n")
        return line


@dataclass
class Staged:
    """A listening stage, with its output and the results of ended connections."""

    stage: Stage
    choice: Choice
    address: str
    root: Path
    said: list[str]
    ended: list[ConnectionResult]
    over: anyio.Event = field(default_factory=anyio.Event)
    told: anyio.Event = field(default_factory=anyio.Event)

    def tell(self, one: ConnectionResult) -> None:
        self.ended.append(one)
        told, self.told = self.told, anyio.Event()
        told.set()

    @asynccontextmanager
    async def client(self, name: str = "", **options: Any) -> AsyncGenerator[Client]:
        """Yield a client that disconnects after the block."""
        options = {"proxy": None, "max_size": None, **options}
        if self.address.startswith("ws://"):
            async with websockets.connect(f"{self.address}/{name}", **options) as connection:
                yield Client(connection)
        elif self.address.startswith("ws+unix:"):
            path = self.address.removeprefix("ws+unix:")
            async with websockets.unix_connect(path, f"ws://localhost/{name}") as connection:
                yield Client(connection)
        else:
            async with await anyio.connect_unix(self.address.removeprefix("unix:")) as stream:
                yield Client(OverLines(stream))

    async def result(self, number: int = 1) -> ConnectionResult:
        """Wait for the result of the connection with this number and return it."""
        with anyio.fail_after(BOUND):
            while True:
                told = self.told
                for one in self.ended:
                    if one.connection == str(number):
                        return one
                await told.wait()

    async def problems(self, number: int = 1) -> list[str]:
        """Return the problems of a connection, without the folder of their file."""
        ended = await self.result(number)
        return [one.removeprefix(f"{self.root.parent}/mine/") for one in ended.problems]


@asynccontextmanager
async def staged(
    folder: Path,
    files: Mapping[str, str],
    *,
    kind: str = "ws",
    bounds: Bounds | None = None,
    environment: Mapping[str, str] | None = None,
    requires_initialize: bool = False,
) -> AsyncGenerator[Staged]:
    """Run a stage with these scenarios (name without suffix -> text) while the block runs."""
    (mine := folder / "mine").mkdir()
    (mine / "pytest.ini").touch()
    for name, text in files.items():
        (mine / f"{name}.scenario.yaml").write_text(text, "utf-8")
    choice = load_choice([str(mine)])
    (root := folder / "stage").mkdir()
    said: list[str] = []
    address = (
        TcpAddress("127.0.0.1", 0)
        if kind == "ws"
        else UnixAddress(str(folder / "socket"), websocket=kind == "ws+unix")
    )
    stage = Stage(
        choice,
        root,
        {"PATH": "/usr/bin:/bin", **(environment or {})},
        requires_initialize=requires_initialize,
        bounds=bounds or Bounds(),
        say=said.append,
        on_result=lambda one: found.tell(one),
    )
    listener = open_listener(address)
    found = Staged(stage, choice, str(listener.address), root, said, [])

    async def run() -> None:
        await Reception(stage, listener, Admission(missing_reason=stage.missing_reason)).run()
        found.over.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            try:
                yield found
            finally:
                stage.stop()
                with anyio.CancelScope(shield=True), anyio.fail_after(BOUND):
                    await found.over.wait()
    finally:
        listener.close()
