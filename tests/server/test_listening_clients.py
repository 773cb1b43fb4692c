"""Several clients of a listening server: notifications, disconnections, rejected requests."""

import json
from typing import Any

import anyio
import pytest
import websockets
from listening_peer import KINDS, WEBSOCKETS, OverLines, listening, said
from model_side import Reply, delta, opened, runs, says
from session_peer import Peer

from reference_server.transport import websocket
from reference_server.transport.lines import LINE_LIMIT

pytestmark = [pytest.mark.socket]

BOUND = 20.0
ASKS: dict[str, Any] = {"approvalPolicy": "on-request", "sandbox": "danger-full-access"}


def held(gate: anyio.Event) -> Reply:
    return Reply([opened(), delta("Hel"), gate, *says("Hel", "lo").parts[-2:]])


async def resumed(peer: Peer, thread: str) -> dict[str, Any]:
    return (await peer.request("thread/resume", {"threadId": thread}))["result"]["thread"]


@pytest.mark.parametrize("kind", KINDS)
async def test_both_clients_are_told_of_a_turn_and_in_one_order(tmp_path, kind) -> None:
    async with (
        listening(tmp_path / "home", kind, [says("Hel", "lo")]) as server,
        server.client() as first,
        server.client() as other,
    ):
        thread = await first.start_thread()
        await resumed(other, thread)
        end = await first.run_turn(thread)
        assert await other.turn_end(end["id"]) == end
        told = [
            [m for m in peer.seen if m.get("params", {}).get("turnId") == end["id"]]
            for peer in (first, other)
        ]
        assert told[0] == told[1] != []


@pytest.mark.parametrize("kind", KINDS)
async def test_both_are_asked_the_first_answer_counts_and_who_was_not_asked_has_no_say(
    tmp_path, kind
) -> None:
    replies = [runs("echo once >> out"), says("done")]
    async with (
        listening(tmp_path / "home", kind, replies) as server,
        server.client() as first,
        server.client() as other,
        server.client() as stranger,
    ):
        thread = await first.start_thread(cwd=str(tmp_path), **ASKS)
        await resumed(other, thread)
        turn = await first.start_turn(thread)
        question = await first.asked()
        assert question == await other.asked()
        await stranger.decide(question, "cancel")
        # The answer to this request shows that what the stranger said was read.
        await stranger.request("thread/loaded/list")
        await other.decide(question, "accept")
        await first.decide(question, "cancel")
        for peer in (first, other):
            await peer.event("serverRequest/resolved", requestId=question["id"])
            assert (await peer.turn_end(turn))["status"] == "completed"
        assert (tmp_path / "out").read_text() == "once\n"
        assert "serverRequest/resolved" not in stranger.methods()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_turn_goes_on_without_anybody_and_is_shown_to_who_comes_back(
    tmp_path, kind
) -> None:
    gate = anyio.Event()
    async with listening(tmp_path / "home", kind, [held(gate)]) as server:
        async with server.client() as first:
            thread = await first.start_thread()
            turn = await first.start_turn(thread)
            await first.event("item/agentMessage/delta", delta="Hel")
        gate.set()
        loaded = server.server.services.threads.find_loaded(thread)
        assert loaded is not None
        running = loaded.turn
        if running is not None:
            with anyio.fail_after(BOUND):
                await running.end_event.wait()
        async with server.client() as back:
            shown = await resumed(back, thread)
            assert shown["status"] == {"type": "idle"}
            assert [one["id"] for one in shown["turns"]] == [turn]
            assert shown["turns"][0]["status"] == "completed"
            assert shown["turns"][0]["items"][-1]["text"] == "Hello"


@pytest.mark.parametrize("kind", KINDS)
async def test_who_comes_back_is_asked_what_is_still_open(tmp_path, kind) -> None:
    replies = [runs("true"), says("done")]
    async with listening(tmp_path / "home", kind, replies) as server:
        async with server.client() as first:
            thread = await first.start_thread(cwd=str(tmp_path), **ASKS)
            turn = await first.start_turn(thread)
            question = await first.asked()
        async with server.client() as back:
            await resumed(back, thread)
            assert await back.asked() == question
            await back.decide(question, "accept")
            assert (await back.turn_end(turn))["status"] == "completed"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_ten_thousand_requests_at_once_are_all_answered(tmp_path, kind) -> None:
    count = 10_000
    async with listening(tmp_path / "home", kind) as server, server.connection() as line:
        with anyio.fail_after(60):
            # None of the answers is read before all is written.
            for number in range(count):
                await line.put(said({"id": number, "method": "thread/loaded/list", "params": {}}))
            answers = [json.loads(await line.take()) for _ in range(count)]
        assert [one["id"] for one in answers] == list(range(count))
        assert all(one["result"]["data"] == [] for one in answers)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_to_the_server_is_taken_behind_requests_that_wait(tmp_path, kind) -> None:
    replies = [runs("true"), says("done")]
    async with listening(tmp_path / "home", kind, replies) as server, server.client() as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), **ASKS)
        turn = await peer.start_turn(thread)
        question = await peer.asked()
        last = 0
        for _ in range(300):
            last = await peer.send("thread/read", {"threadId": thread, "includeTurns": True})
        await peer.decide(question, "accept")
        assert (await peer.turn_end(turn))["status"] == "completed"
        assert "result" in await peer.answer(last)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_message_over_the_limit_gets_one_error_and_the_connection_lives(
    tmp_path, kind
) -> None:
    async with listening(tmp_path / "home", kind) as server, server.client() as peer:
        await peer.send_line(b" " * (LINE_LIMIT - 2) + b"{}")
        assert (await peer.receive())["error"]["message"].startswith("a message without `method`")
        await peer.send_line(b"x" * (LINE_LIMIT + 1))
        refused = await peer.receive()
        assert refused["id"] is None
        assert f"longer than {LINE_LIMIT} bytes" in refused["error"]["message"]
        assert "result" in await peer.request("initialize", {})


@pytest.mark.parametrize("kind", WEBSOCKETS)
async def test_a_message_twice_as_long_ends_the_connection_with_its_code(tmp_path, kind) -> None:
    async with listening(tmp_path / "home", kind) as server, server.websocket() as line:

        async def say_too_much() -> None:
            await line.connection.send("x" * (websocket.HARD_LIMIT + 1))
            await line.connection.recv()

        with pytest.raises(websockets.ConnectionClosed) as closed:
            await say_too_much()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize("kind", WEBSOCKETS)
async def test_a_binary_frame_gets_one_error_and_the_connection_lives(tmp_path, kind) -> None:
    async with listening(tmp_path / "home", kind) as server, server.websocket() as line:
        await line.connection.send(b'{"id":1,"method":"initialize","params":{}}')
        refused = json.loads(await line.take())
        assert refused["id"] is None
        assert "text frame" in refused["error"]["message"]
        await line.connection.send(["", '{"id":2,"method":', '"initialize",', '"params":{}}'])
        assert json.loads(await line.take())["id"] == 2


@pytest.mark.parametrize("kind", WEBSOCKETS)
@pytest.mark.parametrize("parts", [[b"caf\xe9"], [b'{"id":1,"x":"\xc3', b'A"}']])
async def test_text_that_is_no_utf8_ends_that_connection_alone(tmp_path, kind, parts) -> None:
    async with (
        listening(tmp_path / "home", kind) as server,
        server.websocket() as line,
        server.client() as other,
    ):

        async def say_no_text() -> None:
            await line.connection.send(parts, text=True)
            await line.connection.recv()

        with pytest.raises(websockets.ConnectionClosed) as closed, anyio.fail_after(BOUND):
            await say_no_text()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1007
        assert "result" in await other.request("thread/loaded/list", {})


@pytest.mark.parametrize("kind", WEBSOCKETS)
async def test_a_letter_may_be_split_between_frames(tmp_path, kind) -> None:
    async with listening(tmp_path / "home", kind) as server, server.websocket() as line:
        said = '{"id":1,"method":"initialize","params":{},"x":"\u00e9"}'.encode()
        at = said.index(b"\xc3") + 1
        await line.connection.send([said[:at], said[at:]], text=True)
        assert json.loads(await line.take())["id"] == 1


@pytest.mark.parametrize("kind", WEBSOCKETS)
async def test_a_ping_is_answered_and_a_close_too(tmp_path, kind) -> None:
    async with listening(tmp_path / "home", kind) as server, server.websocket() as line:
        with anyio.fail_after(BOUND):
            await (await line.connection.ping())
            await line.connection.close()
        assert line.connection.close_code == 1000


@pytest.mark.parametrize("kind", KINDS)
async def test_an_invalid_message_gets_an_error_and_the_connection_lives(tmp_path, kind) -> None:
    async with listening(tmp_path / "home", kind) as server, server.client() as peer:
        for line in (b"nothing", b"[1]", b'"\xc3\xa9"'):
            await peer.send_line(line)
            assert (await peer.receive())["id"] is None
        await peer.send_line(b"  ")
        assert "result" in await peer.request("initialize", {})


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_ends_interrupts_tells_and_says_goodbye(tmp_path, kind) -> None:
    async with (
        listening(tmp_path / "home", kind, [held(anyio.Event())]) as server,
        server.client() as first,
        server.connection() as idle,
    ):
        thread = await first.start_thread()
        turn = await first.start_turn(thread)
        await first.event("item/agentMessage/delta", delta="Hel")
        server.server.stop()
        assert (await first.turn_end(turn))["status"] == "interrupted"
        await first.drain()
        with pytest.raises(anyio.EndOfStream):
            await idle.take()
        if not isinstance(idle, OverLines):
            assert idle.connection.close_code == 1001
        with anyio.fail_after(BOUND):
            await server.ended.wait()
