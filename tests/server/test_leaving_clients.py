"""A client that closed its side: it gets owed messages while it reads, else it is dropped."""

import fcntl
import json
import os
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest
from model_side import ModelSide, Reply
from session_peer import config

from reference_server import connection as connection_module
from reference_server.config.home import Home
from reference_server.connection import Connection
from reference_server.rollout.reader import RolloutReader
from reference_server.server import running_server
from reference_server.transport.base import MemoryTransport, Transport
from reference_server.transport.descriptors import Descriptors
from reference_server.transport.stdio import StdioTransport

BOUND = 20.0
LONG_ID = "i" * 1_000


@dataclass
class Client:
    """The other end of a transport."""

    transport: Transport
    send: Callable[[bytes], Awaitable[None]]
    end_input: Callable[[], None]
    read: Callable[[], Awaitable[bytes]]
    """Return a part of the server's output, b"" at its end."""


@asynccontextmanager
async def in_memory() -> AsyncGenerator[Client]:
    memory = MemoryTransport()

    async def read() -> bytes:
        try:
            return await memory.take() + b"\n"
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return b""

    yield Client(memory, memory.put, memory.end_input, read)
    memory.close()


@asynccontextmanager
async def over_descriptors(
    server_in: int, client_out: int, client_in: int, server_out: int, end: Callable[[], None]
) -> AsyncGenerator[Client]:
    os.set_blocking(client_out, False)

    async def send(line: bytes) -> None:
        rest = line + b"\n"
        while rest:
            try:
                rest = rest[os.write(client_out, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(client_out)

    async def read() -> bytes:
        await anyio.wait_readable(client_in)
        return os.read(client_in, 3000)

    yield Client(StdioTransport(Descriptors(server_in, server_out)), send, end, read)


@asynccontextmanager
async def over_pipes() -> AsyncGenerator[Client]:
    server_in, client_out = os.pipe()
    client_in, server_out = os.pipe()
    ends = (server_in, client_out, client_in, server_out)
    async with over_descriptors(*ends, lambda: os.close(client_out)) as client:
        yield client
    for descriptor in (server_in, client_in, server_out):
        os.close(descriptor)


@asynccontextmanager
async def over_a_socket_pair() -> AsyncGenerator[Client]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        ends = (ours.fileno(), theirs.fileno(), theirs.fileno(), ours.fileno())
        async with over_descriptors(*ends, lambda: theirs.shutdown(socket.SHUT_WR)) as client:
            yield client


EVERY_WAY = pytest.mark.parametrize(
    "way",
    [
        pytest.param(in_memory, marks=pytest.mark.slow),
        over_pipes,
        pytest.param(over_a_socket_pair, marks=pytest.mark.socket),
    ],
)


@asynccontextmanager
async def served(home: Path, client: Client, *replies: Reply) -> AsyncGenerator[Connection]:
    """Serve the client until its connection has ended; the block is the client."""
    side = ModelSide(list(replies))
    with anyio.fail_after(BOUND):
        async with running_server(Home(home), config(), model_transport=side.transport) as server:
            connection = Connection(client.transport)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(server.serve, connection, then_stop=True))
                yield connection


async def ask(client: Client, number: int = 0) -> None:
    """Ask for what does not exist: the answer is as long as the question."""
    question = {"id": f"{number} {LONG_ID}", "method": "none"}
    await client.send(json.dumps(question).encode())


async def ask_until_full(client: Client, connection: Connection) -> int:
    """Ask without reading until nothing more is taken; gives how often."""
    asked = 0
    while not connection.outbox.is_full:
        await ask(client, asked)
        asked += 1
        await anyio.lowlevel.checkpoint()
    return asked


@EVERY_WAY
async def test_a_full_outbox_does_not_hide_that_the_client_has_gone(
    tmp_path, monkeypatch, way
) -> None:
    monkeypatch.setattr(connection_module, "FAREWELL_TIME", 0.05)
    async with way() as client, served(tmp_path, client) as connection:
        await ask_until_full(client, connection)
        await ask(client)
        client.end_input()


@EVERY_WAY
async def test_a_running_turn_ends_with_a_client_that_reads_nothing(
    tmp_path, monkeypatch, way
) -> None:
    monkeypatch.setattr(connection_module, "FAREWELL_TIME", 0.05)
    home = tmp_path / "home"
    async with way() as client, served(home, client, Reply([anyio.Event()])) as connection:
        await client.send(b'{"id":1,"method":"thread/start"}')
        words = [{"type": "text", "text": "hi"}]
        given = {"threadId": "thr_1", "input": words}
        start = {"id": 2, "method": "turn/start", "params": given}
        await client.send(json.dumps(start).encode())
        await ask_until_full(client, connection)
        await ask(client)
        client.end_input()
    assert ended_turns(home) == ["interrupted"]


def ended_turns(home: Path) -> list[str]:
    [rollout] = home.glob("sessions/*/*/*/*.jsonl")
    records = [json.loads(line) for line in rollout.read_text().splitlines()]
    return [record["status"] for record in records if record["type"] == "turn-completed"]


@EVERY_WAY
async def test_who_reads_slowly_after_the_end_of_its_input_gets_every_answer(tmp_path, way) -> None:
    async with way() as client, served(tmp_path, client) as connection:
        asked = await ask_until_full(client, connection)
        for number in range(asked, asked + 5):
            await ask(client, number)
        client.end_input()
        pieces: list[bytes] = []
        left = asked + 5
        while left:
            pieces.append(await client.read())
            left -= pieces[-1].count(b"\n")
    heard = b"".join(pieces).splitlines()
    answers = [json.loads(line)["id"].split()[0] for line in heard]
    assert answers == [str(number) for number in range(asked + 5)]


@EVERY_WAY
async def test_the_end_is_known_while_what_came_before_it_is_unread(way) -> None:
    known = anyio.Event()
    async with way() as client:

        async def told() -> None:
            await client.transport.wait_for_end()
            known.set()

        await client.send(b"1")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(told)
            await anyio.wait_all_tasks_blocked()
            assert not known.is_set()
            client.end_input()
            with anyio.fail_after(BOUND):
                await known.wait()
        assert await client.transport.receive() == [b"1"]


@pytest.mark.parametrize("input_file", ["in.jsonl", os.devnull])
async def test_a_file_has_ended_when_it_was_read_to_its_end(tmp_path, input_file: str) -> None:
    path = tmp_path / input_file
    if not path.exists():
        path.write_text("1\n")
    with path.open("rb") as given:
        transport = StdioTransport(Descriptors(given.fileno(), given.fileno()))
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(transport.wait_for_end)
                while await transport.receive():
                    pass


async def test_a_signal_does_not_wait_for_a_rollout_that_takes_long_to_read(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(connection_module, "FAREWELL_TIME", 0.05)
    path = tmp_path / "sessions" / "2025" / "01" / "02" / "rollout-x-thr_1.jsonl"
    path.parent.mkdir(parents=True)
    path.touch()
    reading, ended = anyio.Event(), threading.Event()

    def endless(_reader: RolloutReader, given_up: threading.Event) -> None:
        anyio.from_thread.run_sync(reading.set)
        if given_up.wait(BOUND):
            ended.set()

    monkeypatch.setattr(RolloutReader, "read", endless)
    async with in_memory() as client, served(tmp_path, client) as connection:
        await client.send(b'{"id":1,"method":"thread/read","params":{"threadId":"thr_1"}}')
        await reading.wait()
        connection.stop_reading()
    assert await anyio.to_thread.run_sync(ended.wait, BOUND)


async def test_a_signal_does_not_wait_for_who_reads_slowly(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(connection_module, "FAREWELL_TIME", 0.05)
    async with over_pipes() as client, served(tmp_path, client) as connection:
        await ask_until_full(client, connection)
        connection.stop_reading()


@EVERY_WAY
async def test_a_request_that_never_ends_does_not_keep_a_server_without_a_client(
    tmp_path, way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "ANSWER_TIME", 0.1)
    with (tmp_path / "counters").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with anyio.fail_after(BOUND):
            async with way() as client, served(tmp_path, client):
                await client.send(b'{"id":1,"method":"thread/start"}')
                client.end_input()
