"""The transports of the contract tests, each with its far side, which is the server's.

A link is one connection. Its far side works with bytes, so that a test can write half a line,
invalid bytes or nothing, and close either direction.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import anyio
from anyio.abc import ByteStream, Listener, SocketAttribute, SocketStream
from anyio.streams.stapled import StapledObjectStream
from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from harness.client.transport.base import Transport
from harness.client.transport.connect import Connection, connect
from harness.client.transport.jsonl import LineSplitter
from harness.client.transport.streams import LineTransport, memory_pair
from harness.faults.base import all_faults
from harness.faults.live.fault import LiveFault
from harness.faults.live.transport import FaultyTransport

LIMIT = 100_000
# Copies between the standard streams of a process and two sockets, until either side is closed.
RELAY = """
import os, socket, sys, threading
up, down = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
def copy(read, write, end):
    try:
        while data := read(65536):
            write(data)
    except OSError:
        pass
    end()
def all_of(data):
    while data:
        data = data[os.write(1, data):]
def no_more_input():
    os.close(0)
    up.close()
thread = threading.Thread(
    target=copy, args=(lambda n: os.read(0, n), up.sendall, no_more_input), daemon=True
)
thread.start()
copy(down.recv, all_of, lambda: os.close(1))
thread.join()
"""


class Far(Protocol):
    """The server's side of a connection, in bytes."""

    async def send(self, data: bytes) -> None: ...
    async def receive(self) -> bytes:
        """Return some bytes, b"" at the end."""
        ...

    async def close_output(self) -> None:
        """Close the writing side, so that the peer reads to the end."""
        ...

    async def close_input(self) -> None:
        """Close the reading side."""
        ...


@dataclass(frozen=True)
class Link:
    near: Transport
    far: Far


MakeLink = Callable[[], AbstractAsyncContextManager[Link]]


class _MemoryFar:
    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def receive(self) -> bytes:
        try:
            return await self._stream.receive()
        except anyio.EndOfStream:
            return b""

    async def close_output(self) -> None:
        await self._stream.aclose()

    async def close_input(self) -> None:
        await _both_ways(self._stream).receive_stream.aclose()


@asynccontextmanager
async def memory_link() -> AsyncGenerator[Link]:
    near, far = memory_pair()
    yield Link(LineTransport(near, near, LineSplitter(LIMIT)), _MemoryFar(far))
    for stream in (near, far):
        await _both_ways(stream).aclose()


def _both_ways(stream: ByteStream) -> StapledObjectStream[bytes]:
    # As with a pipe, only the sending side can be closed from outside; a test needs the other too.
    return getattr(stream, "_stream")  # noqa: B009


class _RelayFar:
    def __init__(self, up: SocketStream, down: SocketStream) -> None:
        self._up, self._down = up, down

    async def send(self, data: bytes) -> None:
        await self._down.send(data)

    async def receive(self) -> bytes:
        try:
            return await self._up.receive()
        except anyio.EndOfStream:
            return b""

    async def close_output(self) -> None:
        await self._down.send_eof()

    async def close_input(self) -> None:
        await self._up.aclose()


@asynccontextmanager
async def stdio_link() -> AsyncGenerator[Link]:
    """Yield a link over the pipes of a real process."""
    ours_up, theirs_up = socket.socketpair()
    ours_down, theirs_down = socket.socketpair()
    numbers = (theirs_up.fileno(), theirs_down.fileno())
    command = [sys.executable, "-c", RELAY, *map(str, numbers)]
    process = await anyio.open_process(command, stderr=None, pass_fds=numbers)
    theirs_up.close()
    theirs_down.close()
    assert process.stdin is not None
    assert process.stdout is not None
    up, down = await _stream(ours_up), await _stream(ours_down)
    near = LineTransport(process.stdout, process.stdin, LineSplitter(LIMIT))
    try:
        yield Link(near, _RelayFar(up, down))
    finally:
        process.kill()
        await process.aclose()
        await up.aclose()
        await down.aclose()


async def _stream(ours: socket.socket) -> SocketStream:
    return await SocketStream.from_socket(ours)


class _SocketFar:
    """The far side of a socket, as bytes."""

    def __init__(self, stream: SocketStream) -> None:
        self.stream = stream

    async def send(self, data: bytes) -> None:
        await self.stream.send(data)

    async def receive(self) -> bytes:
        try:
            return await self.stream.receive()
        except anyio.EndOfStream:
            return b""

    async def close_output(self) -> None:
        await self.stream.send_eof()

    async def close_input(self) -> None:
        await self.stream.aclose()


@asynccontextmanager
async def unix_link() -> AsyncGenerator[Link]:
    """Yield a link over a Unix socket."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        async with await anyio.create_unix_listener(path) as listener:
            near = await connect(f"unix:{path}", limit=LIMIT)
            far = await _accepted(listener)
            try:
                yield Link(near, _SocketFar(far))
            finally:
                await near.release()
                await far.aclose()


async def _accepted(listener: Listener[SocketStream]) -> SocketStream:
    """Return the first connection to a listener."""
    found: list[SocketStream] = []

    async def keep(stream: SocketStream) -> None:
        found.append(stream)
        serving.cancel()

    with anyio.CancelScope() as serving:
        await listener.serve(keep)
    return found[0]


class _WebSocketFar(_SocketFar):
    """A WebSocket server's side: each line is a text frame, and part of a line a partial frame.

    It reads with the library but writes frames itself, since the library does not let a server
    write after the peer's close, or close in the middle of a message.
    """

    def __init__(self, stream: SocketStream) -> None:
        super().__init__(stream)
        self._protocol = ServerProtocol()
        self._half = False

    async def shake_hands(self) -> None:
        while self._protocol.state is State.CONNECTING:
            self._protocol.receive_data(await self.stream.receive())
            for request in self._protocol.events_received():
                assert isinstance(request, Request)
                self._protocol.send_response(self._protocol.accept(request))
        await self.stream.send(b"".join(self._protocol.data_to_send()))

    async def send(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        frames = [self._frame(piece, fin=True) for piece in whole]
        frames += [self._frame(rest, fin=False)] if rest else []
        await self.stream.send(b"".join(frames))

    async def send_frame(self, frame: Frame) -> None:
        """Send a frame unchanged."""
        await self.stream.send(frame.serialize(mask=False))

    async def receive(self) -> bytes:
        while True:
            data = b""
            for frame in self._protocol.events_received():
                assert isinstance(frame, Frame)
                if frame.opcode in (Opcode.TEXT, Opcode.CONT):
                    data += bytes(frame.data) + (b"\n" if frame.fin else b"")
            if data or self._protocol.close_rcvd is not None:
                return data
            try:
                self._protocol.receive_data(await self.stream.receive())
            except anyio.EndOfStream:
                return b""

    async def close_output(self) -> None:
        await self.send_frame(Frame(Opcode.CLOSE, Close(1000, "").serialize()))

    def _frame(self, data: bytes, *, fin: bool) -> bytes:
        opcode = Opcode.CONT if self._half else Opcode.TEXT
        self._half = not fin
        return Frame(opcode, data, fin).serialize(mask=False)


@asynccontextmanager
async def websocket_link() -> AsyncGenerator[Link]:
    """Yield a link over a WebSocket on loopback."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)
        near, far = await _met(listener, f"ws://127.0.0.1:{port}")
        try:
            yield Link(near, far)
        finally:
            await near.release()
            await far.stream.aclose()


async def _met(listener: Listener[SocketStream], address: str) -> tuple[Connection, _WebSocketFar]:
    """Return both sides of a new connection, after the handshake."""
    near: list[Connection] = []
    far: list[_WebSocketFar] = []

    async def call() -> None:
        near.append(await connect(address, limit=LIMIT))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        far.append(_WebSocketFar(await _accepted(listener)))
        await far[0].shake_hands()
    return near[0], far[0]


@asynccontextmanager
async def faulty_link() -> AsyncGenerator[Link]:
    """Yield an in-memory link with a fault that cannot act, so that nothing may differ."""
    async with memory_link() as link:
        live = LiveFault(all_faults()["turn-ends-twice"])
        yield Link(FaultyTransport(link.near, live), link.far)


LINKS: dict[str, MakeLink] = {
    "memory": memory_link,
    "faulty": faulty_link,
    "stdio": stdio_link,
    "unix": unix_link,
    "websocket": websocket_link,
}
