"""Lines: how bytes become messages, over every kind of stream."""

import os
from collections.abc import Callable

import anyio
import pytest

from reference_server.transport.base import MemoryTransport, Oversized, PeerGone, Transport
from reference_server.transport.descriptors import Descriptors
from reference_server.transport.lines import LineSplitter
from reference_server.transport.stdio import StdioTransport


def test_lines_are_the_same_however_the_bytes_arrive() -> None:
    data = b'{"a":1}\n\n  \n{"b":"\xc3\xa9"}\r\n{"c":3}'
    expected = [b'{"a":1}', b'{"b":"\xc3\xa9"}\r', b'{"c":3}']
    for size in range(1, len(data) + 1):
        splitter = LineSplitter()
        lines = [
            line
            for start in range(0, len(data), size)
            for line in splitter.feed(data[start : start + size])
        ]
        assert lines + splitter.end() == expected, size


def test_a_line_at_the_limit_is_taken_and_one_above_is_not() -> None:
    splitter = LineSplitter(limit=4)
    assert splitter.feed(b"1234\n12345\n1\n") == [b"1234", Oversized(4), b"1"]


def test_an_oversized_line_is_reported_before_its_end_and_once() -> None:
    splitter = LineSplitter(limit=4)
    assert splitter.feed(b"123456") == [Oversized(4)]
    assert splitter.feed(b"789") == []
    assert splitter.feed(b"0\n1\n") == [b"1"]
    assert splitter.end() == []


class Pipes:
    """A stdio transport over two pipes of this process."""

    def __init__(self) -> None:
        self.input, self.their_output = os.pipe()
        self.their_input, self.output = os.pipe()
        self.transport = StdioTransport(Descriptors(self.input, self.output))

    def close(self, *descriptors: int) -> None:
        for descriptor in descriptors or (
            self.input,
            self.their_output,
            self.their_input,
            self.output,
        ):
            os.close(descriptor)


@pytest.fixture(params=["memory", "stdio"])
def ends(request):
    """Give a transport, and its peer's ways to put, to end, and to stop reading."""
    if request.param == "memory":
        memory = MemoryTransport()
        yield memory, memory.put, memory.end_input, memory.stop_reading
        memory.close()
        return
    pipes = Pipes()
    still_open = {pipes.input, pipes.output, pipes.their_output, pipes.their_input}

    async def put(line: bytes) -> None:
        os.write(pipes.their_output, line + b"\n")

    def end(descriptor: int) -> None:
        still_open.discard(descriptor)
        os.close(descriptor)

    yield (
        pipes.transport,
        put,
        lambda: end(pipes.their_output),
        lambda: end(pipes.their_input),
    )
    for descriptor in still_open:
        os.close(descriptor)


Ends = tuple[Transport, Callable, Callable[[], None], Callable[[], None]]


class TestEveryTransport:
    async def test_gives_messages_in_order_then_the_end(self, ends: Ends) -> None:
        transport, put, end, _ = ends
        await put(b"1")
        await put(b"2")
        end()
        received: list[object] = []
        with anyio.fail_after(5):
            while messages := await transport.receive():
                received += messages
        assert received == [b"1", b"2"]
        assert await transport.receive() == []

    async def test_says_when_nobody_reads(self, ends: Ends) -> None:
        transport, _, _, stop_reading = ends
        stop_reading()
        with pytest.raises(PeerGone):
            await transport.send([b"x"])


async def test_a_slow_reader_of_stdio_gets_every_byte() -> None:
    pipes = Pipes()
    messages = [b"%06d" % number + b"x" * 1000 for number in range(500)]
    received = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipes.transport.send, messages)
        while received.count(b"\n") < len(messages):
            with anyio.fail_after(5):
                await anyio.wait_readable(pipes.their_input)
            received += os.read(pipes.their_input, 700)
    assert received == b"\n".join(messages) + b"\n"
    pipes.close()


async def test_input_from_a_file_is_read_to_its_end(tmp_path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"1\n2\n3")
    descriptor, output = os.open(path, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
    transport = StdioTransport(Descriptors(descriptor, output))
    received: list[object] = []
    while messages := await transport.receive():
        received += messages
    assert received == [b"1", b"2", b"3"]
    os.close(descriptor)
    os.close(output)
