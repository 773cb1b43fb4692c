"""thread/fork: the content of a copy, and its independence."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, completed, delta, done, function_call, opened, says
from session_peer import another_client, session


async def fork(peer, thread: str) -> dict[str, Any]:
    return (await peer.request("thread/fork", {"threadId": thread}))["result"]["thread"]


async def read(peer, thread: str) -> dict[str, Any]:
    params = {"threadId": thread, "includeTurns": True}
    return (await peer.request("thread/read", params))["result"]["thread"]


def without_ids(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**turn, "id": None} for turn in turns]


async def test_a_fork_has_the_history_and_goes_on_by_itself(tmp_path) -> None:
    replies = [says("The trunk."), says("A branch."), says("Still the trunk.")]
    async with session(tmp_path, replies) as peer, another_client(peer) as other:
        await other.request("thread/loaded/list")
        thread = await peer.start_thread(model="other", approvalPolicy="never")
        await peer.run_turn(thread, "grow")
        await peer.request("thread/name/set", {"threadId": thread, "name": "trunk"})
        source = await read(peer, thread)
        start = len(peer.seen)
        copy = await fork(peer, thread)
        await peer.receive()
        assert peer.methods(start=start) == ["answer", "thread/started"]
        told = peer.seen[-1]["params"]["thread"]
        assert (told["id"], told["turns"]) == (copy["id"], [])
        assert (await other.event("thread/started"))["thread"]["id"] == thread
        assert copy["id"] != thread
        assert copy["path"] != source["path"]
        assert (copy["status"], copy["preview"]) == ({"type": "idle"}, "grow")
        assert "name" not in copy
        assert without_ids(copy["turns"]) == without_ids(source["turns"])
        assert copy["turns"][0]["id"] != source["turns"][0]["id"]
        await peer.run_turn(copy["id"], "branch off")
        branch = json.dumps(peer.side.bodies[-1])
        assert "The trunk." in branch
        assert peer.side.bodies[-1]["model"] == "other"
        await peer.run_turn(thread, "grow on")
        assert "A branch." not in json.dumps(peer.side.bodies[-1])
        assert len((await read(peer, thread))["turns"]) == 2
        ids = [i["id"] for t in (await read(peer, copy["id"]))["turns"] for i in t["items"]]
        assert len(ids) == len(set(ids)) == 4


async def test_a_fork_needs_nothing_of_its_original(tmp_path) -> None:
    async with session(tmp_path, [says("One."), says("Two.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "first")
        copy = await fork(peer, thread)
    next(tmp_path.rglob(f"*-{thread}.jsonl")).unlink()
    async with session(tmp_path, [says("Three.")]) as peer:
        shown = (await peer.request("thread/resume", {"threadId": copy["id"]}))["result"]["thread"]
        assert shown["turns"] == copy["turns"]
        await peer.run_turn(copy["id"], "again")
        assert "One." in json.dumps(peer.side.bodies[-1])


async def test_a_stored_thread_is_forked_without_being_loaded(tmp_path) -> None:
    async with session(tmp_path, [says("One.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "first")
    async with session(tmp_path) as peer:
        copy = await fork(peer, thread)
        assert len(copy["turns"][0]["items"]) == 2
        loaded = await peer.request("thread/loaded/list")
        assert loaded["result"]["data"] == [copy["id"]]


async def test_an_ephemeral_thread_is_forked_in_memory(tmp_path) -> None:
    async with session(tmp_path, [says("One."), says("Two."), says("Three.")]) as peer:
        thread = await peer.start_thread(ephemeral=True)
        await peer.run_turn(thread, "first")
        copy = await fork(peer, thread)
        assert (copy["ephemeral"], copy["path"]) == (True, None)
        await peer.run_turn(copy["id"], "second")
        assert "One." in json.dumps(peer.side.bodies[-1])
        assert [len((await read(peer, one))["turns"]) for one in (thread, copy["id"])] == [1, 2]
    assert list(tmp_path.rglob("*.jsonl")) == []


async def test_a_running_turn_is_copied_as_far_as_it_got(tmp_path) -> None:
    never = anyio.Event()
    running = Reply([CREATED, opened(), delta("half"), never])
    async with session(tmp_path, [says("One."), running, says("Go on.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "first")
        turn = await peer.start_turn(thread, "second")
        await peer.event("item/agentMessage/delta", delta="half")
        copy = await fork(peer, thread)
        assert [t["status"] for t in copy["turns"]] == ["completed", "interrupted"]
        assert [item["type"] for item in copy["turns"][1]["items"]] == ["userMessage"]
        assert copy["status"] == {"type": "idle"}
        assert (await read(peer, copy["id"]))["turns"] == copy["turns"]
        assert (await peer.run_turn(copy["id"], "third"))["status"] == "completed"
        assert (await read(peer, thread))["turns"][1]["status"] == "inProgress"
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        await peer.turn_end(turn)
        stored = Path(copy["path"])
    assert not stored.with_suffix(".new").exists()
    async with session(tmp_path) as peer:
        shown = await read(peer, copy["id"])
    assert [t["status"] for t in shown["turns"]] == ["completed", "interrupted", "completed"]


async def test_the_model_of_a_fork_is_told_of_no_call_without_an_output(
    tmp_path, bubblewrap
) -> None:
    del bubblewrap
    asks = function_call("exec_command", cmd="cat", sandbox_permissions="require_escalated")
    replies = [Reply([CREATED, done(asks), completed()]), says("fine")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await peer.start_turn(thread, "first")
        await peer.asked()
        copy = await fork(peer, thread)
        await peer.run_turn(copy["id"], "second")
        told = peer.side.bodies[-1]["input"]
    calls = {one["call_id"] for one in told if one["type"] == "function_call"}
    outputs = {one["call_id"] for one in told if one["type"] == "function_call_output"}
    assert calls == outputs == {"call_1"}


async def test_many_forks_at_once_are_all_different(tmp_path) -> None:
    async with session(tmp_path, [says("One.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "first")
        asked = [await peer.send("thread/fork", {"threadId": thread}) for _ in range(50)]
        copies = [(await peer.answer(one))["result"]["thread"] for one in asked]
    assert len({copy["id"] for copy in copies}) == 50
    assert len({copy["turns"][0]["id"] for copy in copies}) == 50
    assert len({copy["path"] for copy in copies}) == 50


@pytest.mark.parametrize("thread", ["thr_99", "", "../thr_1"])
async def test_an_unknown_thread_is_not_forked(tmp_path, thread: str) -> None:
    async with session(tmp_path) as peer:
        error = (await peer.request("thread/fork", {"threadId": thread}))["error"]
    assert error["message"] == f"there is no thread {thread}"


async def test_a_fork_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch) -> None:
    async with session(tmp_path, [says("One."), says("Two.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "first")
        before = sorted(tmp_path.rglob("*"))

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device", "there")

        monkeypatch.setattr("reference_server.rollout.copy.Original.copied_records", full)
        error = (await peer.request("thread/fork", {"threadId": thread}))["error"]
        assert "No space left" in error["message"]
        assert sorted(tmp_path.rglob("*")) == before
        assert (await peer.request("thread/loaded/list"))["result"]["data"] == [thread]
