"""The client's side of a connection: ids, responses, server requests, floods, blame."""

from __future__ import annotations

import anyio
import pytest
from scenario.fake_server import connected

from harness.errors import TargetGone
from harness.trace.frame import Direction, Kind
from harness.trace.recorder import Recorder

BOUND = 10.0


async def test_answer_belongs_to_its_request_whatever_the_order() -> None:
    with anyio.fail_after(BOUND):
        async with connected() as (peer, server, _):
            server.answers = {}
            one = await peer.send_request("a", {})
            two = await peer.send_request("b", {})
            await server.say({"id": two.id, "result": {"of": "b"}})
            await server.say({"id": one.id, "error": {"code": 1, "message": "of a"}})
            assert (await peer.wait_for_answer(one)).kind is Kind.ERROR
            assert (await peer.wait_for_answer(two)).result == {"of": "b"}


async def test_every_request_has_an_id_of_its_own() -> None:
    async with connected() as (peer, server, _):
        frames = [await peer.send_request("thread/read", {}) for _ in range(5)]
        await peer.wait_for_answer(frames[-1])
        assert len({frame.id for frame in frames}) == 5
        assert [one["id"] for one in server.received] == [frame.id for frame in frames]


async def test_request_of_the_server_is_no_answer_to_ours_with_the_same_id() -> None:
    with anyio.fail_after(BOUND):
        async with connected() as (peer, server, _):
            server.answers = {}
            ours = await peer.send_request("a", {})
            await server.say({"id": ours.id, "method": "item/fileChange/requestApproval"})
            await server.say({"id": ours.id, "result": {}})
            assert (await peer.wait_for_answer(ours)).kind is Kind.RESPONSE
            assert list(peer.questions) == [ours.id]


async def test_question_is_open_until_it_is_answered() -> None:
    with anyio.fail_after(BOUND):
        async with connected() as (peer, server, _):
            await server.say({"id": 7, "method": "ask", "params": {}})
            question = await peer.inbox.wait(lambda frame: frame.method == "ask")
            assert peer.questions == {7: question}
            await peer.answer(question, {"decision": "accept"})
            assert peer.questions == {}
            await peer.request("thread/read", {})
            assert {"id": 7, "result": {"decision": "accept"}} in server.received


async def test_end_of_the_connection_ends_every_wait_and_every_later_request() -> None:
    with anyio.fail_after(BOUND):
        async with connected() as (peer, server, _):
            server.answers = {}
            await server.leave()
            with pytest.raises(TargetGone):
                await peer.request("a", {})
            await peer.ended.wait()
            with pytest.raises(TargetGone):
                await peer.request("b", {})


async def test_flood_ends_the_connection_and_says_so() -> None:
    with anyio.fail_after(BOUND):
        async with connected(max_frames=10) as (peer, server, _):
            await server.write(b'{"method":"x","params":{}}\n' * 20)
            await peer.ended.wait()
            assert "more than 10 messages" in peer.overflow
            assert peer.inbox.closed
            assert len(peer.recorder.trace.frames) == 10


async def test_new_trace_begins_empty_on_the_same_connection() -> None:
    async with connected() as (peer, _, __):
        await peer.request("thread/read", {})
        last = peer.recorder.trace.frames[-1].id
        peer.begin(Recorder())
        assert peer.inbox.frames == []
        answer = await peer.request("thread/read", {})
        assert [frame.kind for frame in peer.recorder.trace.frames] == [Kind.REQUEST, Kind.RESPONSE]
        assert answer.id != last


async def test_bytes_sent_on_purpose_are_marked_and_never_blamed_on_us() -> None:
    async with connected() as (peer, _, __):
        frame = await peer.send_raw(b'{"method": 5}\n')
        assert frame.deliberate
        assert (frame.raw, frame.direction) == (b'{"method": 5}', Direction.TO_TARGET)
        ordinary = await peer.notify("initialized")
        assert not ordinary.deliberate


async def test_refusal_is_an_error_for_the_question() -> None:
    async with connected() as (peer, server, _):
        await server.say({"id": "q-1", "method": "unknown/ask", "params": {}})
        question = await peer.inbox.wait(lambda frame: frame.method == "unknown/ask")
        await peer.refuse(question, "not here")
        await peer.request("thread/read", {})
        error = {"code": -32601, "message": "not here"}
        assert {"id": "q-1", "error": error} in server.received
