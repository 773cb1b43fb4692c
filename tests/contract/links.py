"""The transports under contract, each with its far side: what the server reads and writes.

A link is one connection. Its far side speaks bytes, so that a test can write half a line, bad
bytes or nothing, and close either direction.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import anyio
from anyio.abc import ByteStream, SocketStream
from anyio.streams.stapled import StapledObjectStream

from harness.transport.base import Transport
from harness.transport.jsonl import LineSplitter
from harness.transport.streams import LineTransport, memory_pair

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
    """The other side, in bytes."""

    async def send(self, data: bytes) -> None: ...
    async def receive(self) -> bytes:
        """Some bytes, none at the end."""
        ...

    async def close_output(self) -> None:
        """Nothing more will be written."""
        ...

    async def close_input(self) -> None:
        """Nothing more will be read."""
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
    """The pipes of a real process."""
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


LINKS: dict[str, MakeLink] = {"memory": memory_link, "stdio": stdio_link}
