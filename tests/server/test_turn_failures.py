"""Turns that fail, retry or are interrupted: errors, statuses, items that were open."""

from dataclasses import replace

import anyio
import pytest
from model_side import (
    CREATED,
    CUT,
    Refused,
    Reply,
    completed,
    delta,
    event,
    http_error,
    opened,
    says,
)
from session_peer import Peer, config, session

CUT_OFF = Reply([CREATED, opened(), delta("par"), delta("tial"), CUT])


def started_and_completed(peer: Peer) -> tuple[list[str], list[str]]:
    started = [p["item"]["id"] for p in peer.params_of("item/started")]
    finished = [p["item"]["id"] for p in peer.params_of("item/completed")]
    return started, finished


@pytest.mark.parametrize(
    ("reply", "info"),
    [
        (http_error(500), "InternalServerError"),
        (http_error(401), "Unauthorized"),
        (http_error(400), "BadRequest"),
        (http_error(400, "context_length_exceeded"), "ContextWindowExceeded"),
        (http_error(429, "usage_limit_reached"), "UsageLimitExceeded"),
        (Refused(), "HttpConnectionFailed"),
        (CUT_OFF, "ResponseStreamDisconnected"),
        (Reply([event("response.failed", response={"error": {"code": "odd"}})]), "Other"),
    ],
)
async def test_a_failed_turn_says_why(tmp_path, reply: Reply, info: str) -> None:
    async with session(tmp_path, [reply]) as peer:
        thread = await peer.start_thread()
        end = await peer.run_turn(thread)
        read = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
    assert (end["status"], end["items"]) == ("failed", [])
    assert end["error"]["agentErrorInfo"] == info
    assert end["error"]["message"]
    assert isinstance(end["error"]["additionalDetails"], str)
    [error] = peer.params_of("error")
    assert error == {
        "error": end["error"],
        "willRetry": False,
        "threadId": thread,
        "turnId": end["id"],
    }
    [stored] = read["result"]["thread"]["turns"]
    assert (stored["status"], stored["error"]) == ("failed", end["error"])
    assert read["result"]["thread"]["status"] == {"type": "systemError"}


async def test_a_failed_turn_ends_in_this_order(tmp_path) -> None:
    async with session(tmp_path, [CUT_OFF]) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.methods()[-4:] == [
        "error",
        "item/completed",
        "thread/status/changed",
        "turn/completed",
    ]


async def test_a_thread_works_again_after_a_failure(tmp_path) -> None:
    async with session(tmp_path, [http_error(500), says("fine")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        assert (await peer.run_turn(thread))["status"] == "completed"
    statuses = [p["status"]["type"] for p in peer.params_of("thread/status/changed")]
    assert statuses == ["active", "systemError", "active", "idle"]


async def test_a_disconnect_is_retried_and_the_turn_completes(tmp_path) -> None:
    settings = config(stream_max_retries=2)
    async with session(tmp_path, [CUT_OFF, says("whole")], settings=settings) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert (end["status"], end["error"]) == ("completed", None)
    [error] = peer.params_of("error")
    assert error["willRetry"] is True
    assert error["error"]["agentErrorInfo"] == "ResponseStreamDisconnected"
    assert "(1/2)" in error["error"]["message"]
    assert error["error"]["additionalDetails"]


async def test_a_cut_message_keeps_what_was_streamed_and_the_next_try_is_a_new_item(
    tmp_path,
) -> None:
    settings = config(stream_max_retries=1)
    async with session(tmp_path, [CUT_OFF, says("whole")], settings=settings) as peer:
        await peer.run_turn(await peer.start_thread())
    items = peer.completed_items("agentMessage")
    assert [item["text"] for item in items] == ["partial", "whole"]
    assert items[0]["id"] != items[1]["id"]
    for item in items:
        deltas = [
            d["delta"]
            for d in peer.params_of("item/agentMessage/delta")
            if d["itemId"] == item["id"]
        ]
        assert "".join(deltas) == item["text"]
    assert peer.side.bodies[1] == peer.side.bodies[0]


async def test_a_request_is_retried_within_its_own_budget(tmp_path) -> None:
    settings = config(request_max_retries=1)
    async with session(tmp_path, [http_error(500), http_error(503)], settings=settings) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert end["error"]["agentErrorInfo"] == "InternalServerError"
    assert [e["willRetry"] for e in peer.params_of("error")] == [True, False]
    assert len(peer.side.bodies) == 2


async def test_lasting_failures_are_not_retried(tmp_path) -> None:
    settings = config(request_max_retries=5, stream_max_retries=5)
    async with session(tmp_path, [http_error(401)], settings=settings) as peer:
        await peer.run_turn(await peer.start_thread())
    assert [e["willRetry"] for e in peer.params_of("error")] == [False]


async def test_silence_ends_a_call(tmp_path) -> None:
    never = anyio.Event()
    settings = config(stream_idle_timeout_ms=20)
    async with session(tmp_path, [Reply([CREATED, never])], settings=settings) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert end["error"]["agentErrorInfo"] == "ResponseStreamDisconnected"


async def test_without_any_address_the_turn_says_what_to_set(tmp_path) -> None:
    settings = replace(config(), model_provider="nowhere", providers={})
    async with session(tmp_path, settings=settings) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert "PROVIDER_BASE_URL" in end["error"]["additionalDetails"]


async def test_an_interrupt_is_answered_before_the_turn_ends(tmp_path) -> None:
    never = anyio.Event()
    held = Reply([CREATED, opened(), delta("par"), never])
    async with session(tmp_path, [held, says("b")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/agentMessage/delta")
        before = len(peer.seen)
        answer = await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        end = await peer.turn_end(turn)
        with anyio.fail_after(5):
            await peer.side.dropped.wait()
        assert peer.methods(start=before) == [
            "answer",
            "item/completed",
            "thread/status/changed",
            "turn/completed",
        ]
        await peer.run_turn(thread, "go on")
    assert answer["result"] == {}
    assert end == {"id": turn, "items": [], "status": "interrupted", "error": None}
    assert peer.params_of("error") == []
    assert peer.completed_items("agentMessage")[0]["text"] == "par"
    texts = [m["content"][0]["text"] for m in peer.side.bodies[1]["input"]]
    assert texts == ["hi", "par", "go on"]


async def test_an_interrupt_cuts_the_pause_before_a_retry(tmp_path) -> None:
    settings = config(request_max_retries=3)
    reply = http_error(503, retry_after="200")
    async with session(tmp_path, [reply], settings=settings) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("error", willRetry=True)
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert (await peer.turn_end(turn))["status"] == "interrupted"


async def test_an_interrupt_right_after_the_start_still_gives_a_whole_turn(tmp_path) -> None:
    async with session(tmp_path, [Reply([anyio.Event()])]) as peer:
        await peer.start_thread()
        given = {"threadId": "thr_1", "input": [{"type": "text", "text": "x"}]}
        await peer.send("turn/start", given)
        await peer.send("turn/interrupt", {"threadId": "thr_1", "turnId": "turn_1"})
        await peer.turn_end("turn_1")
    methods = peer.methods()
    assert methods.index("turn/started") < methods.index("turn/completed")
    started, finished = started_and_completed(peer)
    assert started == finished


async def test_only_the_active_turn_can_be_interrupted(tmp_path) -> None:
    never = anyio.Event()
    async with session(tmp_path, [Reply([never])]) as peer:
        thread = await peer.start_thread()
        params = {"threadId": thread, "turnId": "turn_9"}
        idle = await peer.request("turn/interrupt", params)
        turn = await peer.start_turn(thread)
        wrong = await peer.request("turn/interrupt", params)
        unknown = await peer.request("turn/interrupt", {**params, "threadId": "thr_9"})
        still = await peer.request("thread/read", {"threadId": thread})
    assert "no active turn" in idle["error"]["message"]
    assert turn in wrong["error"]["message"]
    assert "thr_9" in unknown["error"]["message"]
    assert still["result"]["thread"]["status"]["type"] == "active"


async def test_every_started_item_is_completed_however_the_turn_ends(tmp_path) -> None:
    reasoning = event("response.output_item.added", output_index=1, item={"type": "reasoning"})
    open_both = [CREATED, opened(0), reasoning, delta("a", 0)]
    replies = [Reply([*open_both, CUT]), Reply([*open_both, completed()])]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.run_turn(thread)
    started, finished = started_and_completed(peer)
    assert sorted(started) == sorted(finished)
    assert len(started) == 6


async def test_a_disk_that_refuses_fails_the_turn_and_not_the_server(
    tmp_path, monkeypatch, caplog
) -> None:
    async with session(tmp_path, [says("a"), says("b")]) as peer:
        thread = await peer.start_thread()
        [loaded] = peer.server.services.threads.loaded_threads

        def full(record: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(loaded.recorder, "append", full)
        end = await peer.run_turn(thread)
        monkeypatch.undo()
        again = await peer.run_turn(thread)
    assert end["status"] == "failed"
    assert "No space left" in end["error"]["additionalDetails"]
    assert again["status"] == "completed"
    methods = peer.methods()
    assert methods.index("turn/started") < methods.index("turn/completed")
    assert "not recorded" in caplog.text
