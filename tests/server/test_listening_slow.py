"""Slow clients beside others: they block nobody, and lose no message without notice."""

import json
import random
from typing import Any, cast

import anyio
import pytest
from listening_peer import KINDS, OverWebSocket, listening
from model_side import Reply, completed, delta, done, message_item, opened
from session_peer import Peer

from harness.protocol.wire.item_events import AgentMessageDeltaNotification
from reference_server import outbox as outbox_module
from reference_server.connection import Connection
from reference_server.deltas import MERGED_LIMIT, DeltaLine
from reference_server.outbox import HIGH_WATER, WAITING_LIMIT, Outbox
from reference_server.transport.base import Incoming

pytestmark = [pytest.mark.socket]

BOUND = 30.0


class Stuck:
    """A transport whose client reads only when it is let."""

    def __init__(self) -> None:
        self.amount_read = 0
        self.gate = anyio.Event()
        self.written: list[bytes] = []

    async def send(self, messages: list[bytes]) -> None:
        await self.gate.wait()
        self.written += messages

    async def receive(self) -> list[Incoming]:
        return []

    async def wait_for_end(self) -> None:
        await anyio.sleep_forever()


def line_of(item: str) -> DeltaLine:
    return DeltaLine(
        AgentMessageDeltaNotification(thread_id="thr_1", turn_id="turn_1", item_id=item, delta="")
    )


async def all_of(outbox: Outbox, transport: Stuck) -> list[dict[str, Any]]:
    transport.gate.set()
    outbox.close()
    with anyio.fail_after(BOUND):
        await outbox.run()
    return [json.loads(one) for one in transport.written]


def texts(messages: list[dict[str, Any]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for one in messages:
        if one.get("method", "").endswith("/delta"):
            item = one["params"]["itemId"]
            joined[item] = joined.get(item, "") + one["params"]["delta"]
    return joined


async def test_below_the_mark_deltas_are_written_one_by_one() -> None:
    transport = Stuck()
    outbox, line = Outbox(transport), line_of("item_1")
    for _ in range(100):
        outbox.put_delta(line.prefix, line.with_text("x"))
    assert len(await all_of(outbox, transport)) == 100


@pytest.mark.parametrize("seed", range(5))
async def test_above_the_mark_deltas_are_joined_and_nothing_is_lost_or_overtakes(seed: int) -> None:
    dice = random.Random(seed)
    transport = Stuck()
    outbox = Outbox(transport)
    lines = {item: line_of(item) for item in ("item_1", "item_2", 'item_"\\')}
    outbox.put(json.dumps({"method": "first", "pad": "x" * HIGH_WATER}).encode())
    said: list[tuple[str, str]] = []
    expected: dict[str, str] = {}
    for number in range(3000):
        item = dice.choice(list(lines))
        if dice.random() < 0.01:
            # The text so far of every item is told before this.
            outbox.put(json.dumps({"method": "mark", "so far": dict(expected)}).encode())
            said.append(("mark", ""))
            continue
        text = dice.choice(
            ["a", "ä", "€", "𝄞", '"', "\\", "\n", "\x00", "\u2028", "", "}}", str(number)]
        )
        expected[item] = expected.get(item, "") + text
        outbox.put_delta(lines[item].prefix, lines[item].with_text(text))
    found = await all_of(outbox, transport)
    assert texts(found) == {item: text for item, text in expected.items() if text}
    for position, one in enumerate(found):
        if one["method"] == "mark":
            so_far = texts(found[:position])
            assert {i: t for i, t in one["so far"].items() if t} == {
                i: t for i, t in so_far.items() if t
            }
    marks = sum(one["method"] == "mark" for one in found)
    assert marks == len(said)
    # At most one line for each item between two marks.
    assert len(found) <= 1 + marks + 3 * (marks + 1)


async def test_a_joined_line_stays_short_enough_to_be_read() -> None:
    transport = Stuck()
    outbox, line = Outbox(transport), line_of("item_1")
    outbox.put(b'{"method":"first","pad":"%b"}' % (b"x" * HIGH_WATER))
    for _ in range(100):
        outbox.put_delta(line.prefix, line.with_text("y" * 10_000))
    found = await all_of(outbox, transport)
    assert texts(found) == {"item_1": "y" * 1_000_000}
    assert max(map(len, transport.written[1:])) <= MERGED_LIMIT


async def test_a_message_being_written_is_not_merged_with_others() -> None:
    transport = Stuck()
    outbox, line = Outbox(transport), line_of("item_1")
    async with anyio.create_task_group() as tasks:
        outbox.put(b'{"method":"first","pad":"%b"}' % (b"x" * HIGH_WATER))
        outbox.put_delta(line.prefix, line.with_text("a"))
        tasks.start_soon(outbox.run)
        await anyio.wait_all_tasks_blocked()
        for text in "bcd":
            outbox.put_delta(line.prefix, line.with_text(text))
        transport.gate.set()
        outbox.close()
    found = [json.loads(one) for one in transport.written]
    assert texts(found) == {"item_1": "abcd"}


async def test_who_lags_too_far_behind_is_told_so_and_nothing_more_is_kept() -> None:
    transport = Stuck()
    outbox = Outbox(transport, may_give_up=True)
    line = line_of("item_1")
    for _ in range(2 * WAITING_LIMIT // 1000):
        outbox.put_delta(line.prefix, line.with_text("x" * 1000))
    assert outbox.given_up.is_set()
    assert outbox.gone
    found = await all_of(outbox, transport)
    assert len(found) == 1
    assert found[0]["id"] is None
    assert found[0]["error"]["code"] == -32001
    assert "thread/resume" in found[0]["error"]["message"]


async def test_the_only_client_of_a_server_is_never_given_up() -> None:
    transport = Stuck()
    outbox = Outbox(transport)
    for _ in range(3):
        outbox.put(b"x" * WAITING_LIMIT)
    assert not outbox.gone


async def test_large_answers_that_were_asked_for_are_not_held_against_a_client() -> None:
    transport = Stuck()
    outbox = Outbox(transport, may_give_up=True)
    for _ in range(3):
        outbox.put_answer(b'"%b"' % (b"x" * WAITING_LIMIT))
    outbox.put(b'"news"')
    assert not outbox.gone
    for _ in range(19):
        outbox.put(b'"%b"' % (b"x" * (WAITING_LIMIT // 16)))
    assert outbox.gone


async def test_one_long_notification_is_never_too_much() -> None:
    transport = Stuck()
    outbox = Outbox(transport, may_give_up=True)
    for _ in range(10):
        outbox.put(b'"%b"' % (b"x" * 2 * WAITING_LIMIT))
        for _ in range(100):
            outbox.put(b'"news"')
        transport.gate.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.run)
            await outbox.wait_until_written()
            tasks.cancel_scope.cancel()
    assert not outbox.gone
    assert len(outbox._large) <= 1, "what is written must not be kept"


def tells(pieces: int, size: int) -> Reply:
    parts: list[Any] = [opened()]
    parts += [delta(f"{number:08}" + "x" * (size - 8)) for number in range(pieces)]
    text = "".join(f"{number:08}" + "x" * (size - 8) for number in range(pieces))
    return Reply([*parts, done(message_item(text)), completed()])


async def read_to_the_end(peer: Peer, turn: str) -> tuple[str, dict[str, Any]]:
    """Give the text as it was streamed, and the item as it was completed."""
    streamed: list[str] = []
    item: dict[str, Any] = {}
    with anyio.fail_after(BOUND):
        while True:
            found = json.loads(await peer.transport.take())
            params = found.get("params", {})
            match found.get("method"):
                case "item/agentMessage/delta":
                    streamed.append(params["delta"])
                case "item/completed" if params["item"]["type"] == "agentMessage":
                    item = params["item"]
                case "turn/completed" if params["turn"]["id"] == turn:
                    assert params["turn"]["status"] == "completed"
                    return "".join(streamed), item
                case _:
                    pass


async def everything(peer: Peer) -> list[bytes]:
    """Read to the end of the connection."""
    found: list[bytes] = []
    with anyio.fail_after(BOUND):
        try:
            while True:
                found.append(await peer.transport.take())
        except anyio.EndOfStream:
            return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_nobody_waits_for_who_reads_nothing_and_it_loses_nothing(tmp_path, kind) -> None:
    """8 MiB: more than is kept before deltas are joined, less than what a client may lag behind."""
    reply = tells(8000, 1024)
    async with (
        listening(tmp_path / "home", kind, [reply]) as server,
        server.client() as first,
        server.client() as slow,
    ):
        thread = await first.start_thread()
        await slow.request("thread/resume", {"threadId": thread})
        turn = await first.start_turn(thread)
        text, item = await read_to_the_end(first, turn)
        assert text == item["text"]
        # Only now.
        assert await read_to_the_end(slow, turn) == (text, item)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_who_lags_too_far_behind_is_let_go_and_resumes(tmp_path, kind) -> None:
    # Sockets take some of it: those of TCP up to 28 MiB here.
    reply = tells(50, 160_000)
    async with listening(tmp_path / "home", kind, [reply] * 6) as server, server.client() as first:
        thread = await first.start_thread()
        async with server.client() as stuck:
            await stuck.request("thread/resume", {"threadId": thread})
            connections = list(server.server._connections)
            item: object = None
            for _ in range(6):
                turn = await first.start_turn(thread)
                _, item = await read_to_the_end(first, turn)
            assert sorted(one.outbox.given_up.is_set() for one in connections) == [False, True]
            # What was on its way is read; why is told to who reads on within two seconds.
            await everything(stuck)
        async with server.client() as back:
            await back.send("thread/resume", {"threadId": thread})
            with anyio.fail_after(BOUND):
                answer = json.loads(await back.transport.take())
            assert answer["result"]["thread"]["turns"][5]["items"][-1] == item


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_who_was_too_slow_is_told_why(tmp_path, kind, monkeypatch) -> None:
    monkeypatch.setattr(outbox_module, "WAITING_LIMIT", 1 << 21)
    async with (
        listening(tmp_path / "home", kind, [tells(50, 160_000)] * 6) as server,
        server.client() as first,
        server.client() as slow,
    ):
        thread = await first.start_thread()
        await slow.request("thread/resume", {"threadId": thread})
        connections = list(server.server._connections)
        given_up = anyio.Event()

        async def read_on() -> None:
            for _ in range(6):
                await read_to_the_end(first, await first.start_turn(thread))

        async def notice(connection: Connection) -> None:
            await connection.outbox.given_up.wait()
            given_up.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_on)
            for connection in connections:
                tasks.start_soon(notice, connection)
            with anyio.fail_after(BOUND):
                await given_up.wait()
            tasks.cancel_scope.cancel()
        last = json.loads((await everything(slow))[-1])
        assert last["error"]["code"] == -32001
        if kind != "unix":
            line = cast("OverWebSocket", cast("object", slow.transport))
            assert line.connection.close_code == 1013


@pytest.mark.slow
async def test_who_attaches_frees_a_turn_that_waits_for_its_only_client(tmp_path) -> None:
    async with (
        listening(tmp_path / "home", "unix", [tells(6000, 1024)]) as server,
        server.client() as stuck,
        server.client() as other,
    ):
        thread = await stuck.start_thread()
        turn = await stuck.start_turn(thread)
        outbox = next(iter(server.server._connections)).outbox
        with anyio.fail_after(BOUND):
            while not any(one.outbox.is_full for one in server.server._connections):
                await anyio.lowlevel.checkpoint()
        assert outbox is not None
        await other.request("thread/resume", {"threadId": thread})
        await read_to_the_end(other, turn)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_ends_does_not_wait_for_who_reads_nothing(tmp_path, kind) -> None:
    async with (
        listening(tmp_path / "home", kind, [tells(50, 160_000)]) as server,
        server.client(close_timeout=0.1) as stuck,
    ):
        await stuck.request("initialize", {})
        (connection,) = server.server._connections
        thread = await stuck.start_thread()
        given = {"threadId": thread, "input": [{"type": "text", "text": "hi"}]}
        await stuck.send("turn/start", given)
        with anyio.fail_after(BOUND):
            while not connection.outbox.is_full:
                await anyio.lowlevel.checkpoint()
        server.server.stop()
        # Two seconds for what it may still read, one for the close; the rest is a busy machine.
        with anyio.fail_after(BOUND):
            await server.ended.wait()
