"""A server outlives its connections: turns go on, and clients come and go until it is stopped."""

import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import ModelSide, Reply, calls, says
from session_peer import BOUND, Message, Peer, config

from reference_server.config.home import Home
from reference_server.connection import Connection
from reference_server.server import Server, running_server
from reference_server.session.thread import LoadedThread
from reference_server.transport.base import MemoryTransport

NOBODY_ELSE = {"sandbox": "danger-full-access", "approvalPolicy": "untrusted"}


@dataclass(kw_only=True)
class Client(Peer):
    """A client that can be subscribed to a thread that it did not start."""

    connection: Connection

    def subscribe(self) -> None:
        """Stand in for thread/resume, which the server does not have yet."""
        [thread] = self.server.services.threads.loaded_threads
        thread.subscribers.add(self.connection.outbox)


class Clients:
    """A server without any client, and the ways in."""

    def __init__(self, server: Server, side: ModelSide) -> None:
        self.server = server
        self.side = side

    @property
    def thread(self) -> LoadedThread:
        """The only thread."""
        [thread] = self.server.services.threads.loaded_threads
        return thread

    @asynccontextmanager
    async def client(self, *, then_stop: bool = False) -> AsyncGenerator[Client]:
        """Connect a client; after the block it has left and its connection has ended."""
        transport = MemoryTransport()
        connection = Connection(transport)

        async def serve() -> None:
            await self.server.serve(connection, then_stop=then_stop)
            transport.end_output()

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve)
                peer = Client(transport, self.server, self.side, connection=connection)
                yield peer
                transport.end_input()
                await peer.drain()
        transport.close()


@asynccontextmanager
async def serving(home: Path, *replies: Reply) -> AsyncGenerator[Clients]:
    """Run a server that no client's leaving ends."""
    side = ModelSide(list(replies))
    async with running_server(Home(home), config(), model_transport=side.transport) as server:
        yield Clients(server, side)


def held(text: str) -> tuple[Reply, anyio.Event]:
    """A reply that waits at its gate before it says anything."""
    gate = anyio.Event()
    return Reply([gate, *says(text).parts]), gate


async def test_a_turn_goes_on_when_its_only_client_has_left(tmp_path) -> None:
    reply, gate = held("still here")
    async with serving(tmp_path, reply) as clients:
        async with clients.client() as first:
            thread = await first.start_thread()
            turn = await first.start_turn(thread)
            await first.event("turn/started")
        assert "turn/completed" not in first.methods()
        async with clients.client() as second:
            second.subscribe()
            asked = {"threadId": thread, "includeTurns": True}
            [shown] = (await second.request("thread/read", asked))["result"]["thread"]["turns"]
            assert (shown["id"], shown["status"]) == (turn, "inProgress")
            gate.set()
            assert (await second.turn_end(turn))["status"] == "completed"
            [shown] = (await second.request("thread/read", asked))["result"]["thread"]["turns"]
    assert shown["status"] == "completed"
    assert [item.get("text") for item in shown["items"]][1:] == ["still here"]


async def test_a_turn_that_nobody_hears_is_recorded_to_its_end(tmp_path) -> None:
    reply, gate = held("into the void")
    async with serving(tmp_path, reply) as clients:
        async with clients.client() as peer:
            await peer.start_turn(await peer.start_thread())
        running = clients.thread.turn
        assert running is not None
        gate.set()
        with anyio.fail_after(BOUND):
            await running.end_event.wait()
    [rollout] = tmp_path.glob("sessions/*/*/*/*.jsonl")
    assert '"status":"completed"' in rollout.read_text().splitlines()[-1]


async def test_who_leaves_disturbs_no_other_client(tmp_path) -> None:
    reply, gate = held("undisturbed")
    async with serving(tmp_path, reply) as clients, clients.client() as stays:
        turn = await stays.start_turn(await stays.start_thread())
        async with clients.client() as leaves:
            leaves.subscribe()
            assert "result" in await leaves.request("initialize", {"clientInfo": {"name": "x"}})
        gate.set()
        assert (await stays.turn_end(turn))["status"] == "completed"
    assert "turn/completed" not in leaves.methods()


async def test_who_has_left_is_subscribed_to_nothing(tmp_path) -> None:
    async with serving(tmp_path, says("a")) as clients:
        async with clients.client() as peer:
            await peer.run_turn(await peer.start_thread())
        subscribers = clients.thread.subscribers
        assert subscribers._outboxes == []
        # A request that was under way when the client left subscribes it no more.
        peer.subscribe()
        assert subscribers._outboxes == []


async def test_a_question_stays_open_for_who_comes_later(tmp_path) -> None:
    asks = calls("exec_command", cmd="touch made")
    async with serving(tmp_path / "home", asks, says("done")) as clients:
        async with clients.client() as first:
            thread = await first.start_thread(cwd=str(tmp_path), **NOBODY_ELSE)
            turn = await first.start_turn(thread)
            question = await first.asked()
        async with clients.client() as second:
            second.subscribe()
            await second.decide(question, "decline")
            assert (await second.turn_end(turn))["status"] == "completed"
    assert not (tmp_path / "made").exists()


async def test_a_server_that_stops_tells_each_client_how_its_turn_ended(tmp_path) -> None:
    replies = [held("a")[0], held("b")[0]]
    async with (
        serving(tmp_path, *replies) as clients,
        clients.client() as one,
        clients.client() as other,
    ):
        turns = [await peer.start_turn(await peer.start_thread()) for peer in (one, other)]
        clients.server.stop()
        for peer, turn in zip((one, other), turns, strict=True):
            assert (await peer.turn_end(turn))["status"] == "interrupted"
            await peer.drain()


async def test_a_client_that_comes_when_the_server_stops_is_not_read(tmp_path) -> None:
    async with serving(tmp_path) as clients:
        clients.server.stop()
        async with clients.client() as late:
            await late.send("initialize", {"clientInfo": {"name": "x"}})
            await late.drain()
    assert late.seen == []


@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "without reading"])
async def test_the_client_with_which_the_server_stops_takes_the_others_along(
    tmp_path, in_order: bool
) -> None:
    async with serving(tmp_path, held("a")[0]) as clients, clients.client() as other:
        turn = await other.start_turn(await other.start_thread())
        async with clients.client(then_stop=True) as last:
            if not in_order:
                last.transport.stop_reading()
                await last.send("thread/explode")
                await anyio.wait_all_tasks_blocked()
        assert (await other.turn_end(turn))["status"] == "interrupted"
        await other.drain()


async def test_a_thread_is_created_when_its_rollout_says_so(tmp_path: Path) -> None:
    """The clock moves on between any two looks at it; `updatedAt` never precedes `createdAt`."""
    ticks = itertools.count(1_700_000_000)
    transport = MemoryTransport()
    side = ModelSide([])
    thread: Message = {}
    async with running_server(
        Home(tmp_path), config(), model_transport=side.transport, clock=lambda: next(ticks)
    ) as server:
        peer = Peer(transport, server, side)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.serve)
            thread = (await peer.request("thread/start"))["result"]["thread"]
            transport.end_input()
            await peer.drain()
    transport.close()
    assert thread["createdAt"] == thread["updatedAt"] == first_record(thread["path"])["at"]


def first_record(rollout: str) -> dict[str, Any]:
    return json.loads(Path(rollout).read_text("utf-8").splitlines()[0])
