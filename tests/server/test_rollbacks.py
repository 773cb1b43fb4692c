"""thread/rollback: the remaining turns and conversation."""

import json
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, delta, opened, says
from session_peer import session


async def roll_back(peer, thread: str, turns: Any) -> dict[str, Any]:
    return await peer.request("thread/rollback", {"threadId": thread, "numTurns": turns})


async def read(peer, thread: str) -> list[dict[str, Any]]:
    params = {"threadId": thread, "includeTurns": True}
    return (await peer.request("thread/read", params))["result"]["thread"]["turns"]


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_the_last_turns_are_dropped_and_the_model_hears_no_more_of_them(
    tmp_path, ephemeral: bool
) -> None:
    replies = [says("One."), says("Two."), says("Three."), says("Four.")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread(ephemeral=ephemeral)
        for text in ("first", "second", "third"):
            await peer.run_turn(thread, text)
        before = await read(peer, thread)
        shown = (await roll_back(peer, thread, 2))["result"]["thread"]
        assert shown["turns"] == before[:1]
        assert (shown["status"], shown["preview"]) == ({"type": "idle"}, "first")
        assert await read(peer, thread) == before[:1]
        await peer.run_turn(thread, "fourth")
        told = json.dumps(peer.side.bodies[-1]["input"])
        assert ("One." in told, "second" in told, "Three." in told) == (True, False, False)
        after = await read(peer, thread)
    assert [turn["id"] for turn in after[:1]] == [before[0]["id"]]
    assert after[1]["id"] not in {turn["id"] for turn in before}
    if not ephemeral:
        async with session(tmp_path) as peer:
            assert await read(peer, thread) == after


async def test_a_rollback_to_before_a_compaction_brings_the_words_back(tmp_path) -> None:
    replies = [says("One."), says("In short: one."), says("Two."), says("Three.")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread()
        first = await peer.run_turn(thread, "first")
        await peer.request("thread/compact/start", {"threadId": thread})
        await peer.event("item/completed", turnId="turn_2")
        await peer.turn_end("turn_2")
        await peer.run_turn(thread, "second")
        assert "In short: one." in json.dumps(peer.side.bodies[-1])
        shown = (await roll_back(peer, thread, 2))["result"]["thread"]
        assert [turn["id"] for turn in shown["turns"]] == [first["id"]]
        await peer.run_turn(thread, "third")
        told = json.dumps(peer.side.bodies[-1]["input"])
        assert ("One." in told, "In short" in told, "second" in told) == (True, False, False)


async def test_more_turns_than_there_are_leaves_none(tmp_path) -> None:
    async with session(tmp_path, [says("One."), says("Two.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "first")
        shown = (await roll_back(peer, thread, 10**18))["result"]["thread"]
        assert shown["turns"] == []
        await peer.run_turn(thread, "second")
        assert "One." not in json.dumps(peer.side.bodies[-1])


async def test_a_thread_that_is_not_loaded_is_rolled_back(tmp_path) -> None:
    async with session(tmp_path, [says("One."), says("Two.")]) as peer:
        thread = await peer.start_thread()
        first = await peer.run_turn(thread, "first")
        await peer.run_turn(thread, "second")
    async with session(tmp_path) as peer:
        shown = (await roll_back(peer, thread, 1))["result"]["thread"]
        assert shown["status"] == {"type": "notLoaded"}
        assert [turn["id"] for turn in shown["turns"]] == [first["id"]]
        assert (await peer.request("thread/loaded/list"))["result"]["data"] == []
        assert len(await read(peer, thread)) == 1


async def test_while_a_turn_runs_nothing_is_dropped(tmp_path) -> None:
    never = anyio.Event()
    async with session(tmp_path, [Reply([CREATED, opened(), delta("a"), never])]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/agentMessage/delta")
        error = (await roll_back(peer, thread, 1))["error"]
        assert turn in error["message"]
        assert len(await read(peer, thread)) == 1


@pytest.mark.parametrize("turns", [0, -1, 0.5, 1.5, "1", None, True, -(10**30)])
async def test_an_invalid_number_of_turns_is_refused(tmp_path, turns: Any) -> None:
    async with session(tmp_path, [says("One.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        error = (await roll_back(peer, thread, turns))["error"]
        assert (error["code"], error["message"].partition(":")[0]) == (-32602, "numTurns")
        assert len(await read(peer, thread)) == 1
