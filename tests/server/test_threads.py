"""thread/start and thread/read: results, settings, files."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from model_side import says
from session_peer import config, session

THREAD_KEYS = {
    "id",
    "preview",
    "ephemeral",
    "modelProvider",
    "createdAt",
    "updatedAt",
    "status",
    "path",
    "cwd",
    "source",
    "turns",
}


async def test_a_new_thread_is_answered_with_exactly_six_keys(tmp_path) -> None:
    async with session(tmp_path) as peer:
        result = (await peer.request("thread/start"))["result"]
    assert set(result) == {
        "thread",
        "model",
        "modelProvider",
        "cwd",
        "approvalPolicy",
        "sandbox",
    }
    assert set(result["thread"]) == THREAD_KEYS
    assert result["thread"]["status"] == {"type": "idle"}
    assert (result["thread"]["preview"], result["thread"]["turns"]) == ("", [])
    assert (result["model"], result["modelProvider"]) == ("test-model", "mock")
    assert result["cwd"] == result["thread"]["cwd"] == os.getcwd()
    assert result["approvalPolicy"] == "on-request"


async def test_the_answer_precedes_thread_started(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        started = await peer.event("thread/started")
    assert peer.methods() == ["answer", "thread/started"]
    assert started["thread"]["id"] == thread


@pytest.mark.parametrize(
    ("word", "policy"),
    [
        ("read-only", {"type": "readOnly", "access": {"type": "fullAccess"}}),
        ("readOnly", {"type": "readOnly", "access": {"type": "fullAccess"}}),
        (
            "workspace-write",
            {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False},
        ),
        (
            "workspaceWrite",
            {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False},
        ),
        ("danger-full-access", {"type": "dangerFullAccess"}),
        ("dangerFullAccess", {"type": "dangerFullAccess"}),
    ],
)
async def test_the_sandbox_goes_in_as_a_word_and_comes_out_as_an_object(
    tmp_path, word: str, policy: dict
) -> None:
    async with session(tmp_path) as peer:
        result = (await peer.request("thread/start", {"sandbox": word}))["result"]
    assert result["sandbox"] == policy


async def test_every_param_of_start_is_taken(tmp_path) -> None:
    params = {
        "model": "other",
        "modelProvider": "mock",
        "cwd": "sub/../sub",
        "approvalPolicy": "never",
        "personality": "friendly",
        "serviceName": "tests",
    }
    async with session(tmp_path) as peer:
        result = (await peer.request("thread/start", params))["result"]
    assert (result["model"], result["approvalPolicy"]) == ("other", "never")
    assert result["cwd"] == os.path.join(os.getcwd(), "sub")


async def test_null_params_count_as_left_out(tmp_path) -> None:
    params = {"model": None, "cwd": None, "sandbox": None, "ephemeral": None}
    async with session(tmp_path) as peer:
        result = (await peer.request("thread/start", params))["result"]
    assert result["model"] == "test-model"
    assert result["thread"]["ephemeral"] is False


async def test_a_provider_nobody_configured_is_refused_by_name(tmp_path) -> None:
    async with session(tmp_path) as peer:
        error = (await peer.request("thread/start", {"modelProvider": "elsewhere"}))["error"]
    assert (error["code"], "elsewhere" in error["message"]) == (-32602, True)


async def test_any_provider_is_good_when_the_environment_has_the_address(tmp_path) -> None:
    settings = replace(config(), environment={"PROVIDER_BASE_URL": "http://model.invalid"})
    async with session(tmp_path, settings=settings) as peer:
        answer = await peer.request("thread/start", {"modelProvider": "elsewhere"})
    assert answer["result"]["modelProvider"] == "elsewhere"


async def test_the_rollout_lies_under_sessions_by_date_and_id(tmp_path) -> None:
    async with session(tmp_path) as peer:
        answer = await peer.request("thread/start")
        thread = answer["result"]["thread"]
        path = Path(thread["path"])
        assert list(tmp_path.rglob("*.jsonl")) == [path]
    year, month, day, name = path.relative_to(tmp_path / "sessions").parts
    assert name.startswith(f"rollout-{year}-{month}-{day}T")
    assert name.endswith(f"-{thread['id']}.jsonl")


async def test_an_ephemeral_thread_leaves_nothing_on_disk(tmp_path) -> None:
    async with session(tmp_path, [says("hello")]) as peer:
        answer = await peer.request("thread/start", {"ephemeral": True})
        thread = answer["result"]["thread"]
        await peer.run_turn(thread["id"])
        read = await peer.request("thread/read", {"threadId": thread["id"], "includeTurns": True})
    assert (thread["ephemeral"], thread["path"]) == (True, None)
    assert list(tmp_path.rglob("*.jsonl")) == []
    [turn] = read["result"]["thread"]["turns"]
    assert [item["type"] for item in turn["items"]] == ["userMessage", "agentMessage"]


async def test_an_ephemeral_thread_is_gone_after_a_restart(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread(ephemeral=True)
    async with session(tmp_path) as peer:
        assert "error" in await peer.request("thread/read", {"threadId": thread})


@pytest.mark.parametrize("thread", ["thr_99", "", "*", "../thr_1", "thr_1*", "é"])
async def test_an_unknown_thread_is_refused_by_its_id(tmp_path, thread: str) -> None:
    async with session(tmp_path) as peer:
        await peer.start_thread()
        error = (await peer.request("thread/read", {"threadId": thread}))["error"]
    assert (error["code"], error["message"]) == (-32600, f"there is no thread {thread}")


async def test_read_gives_turns_only_when_asked(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "first words")
        without = await peer.request("thread/read", {"threadId": thread})
        with_turns = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
    assert without["result"]["thread"]["turns"] == []
    assert without["result"]["thread"]["preview"] == "first words"
    assert without["result"]["thread"]["status"] == {"type": "idle"}
    assert len(with_turns["result"]["thread"]["turns"]) == 1


async def test_read_shows_what_was_streamed_also_after_a_restart(tmp_path) -> None:
    async with session(tmp_path, [says("a", "b"), says("c")]) as peer:
        thread = await peer.start_thread()
        turns = [await peer.start_turn(thread, "one")]
        await peer.turn_end(turns[0])
        turns.append(await peer.start_turn(thread, "two"))
        await peer.turn_end(turns[1])
        await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
    streamed = {
        turn: [p["item"] for p in peer.params_of("item/completed") if p["turnId"] == turn]
        for turn in turns
    }
    live = peer.seen[-1]["result"]["thread"]
    async with session(tmp_path) as after:
        read = await after.request("thread/read", {"threadId": thread, "includeTurns": True})
    stored = read["result"]["thread"]
    for shown in (live, stored):
        assert {turn["id"]: turn["items"] for turn in shown["turns"]} == streamed
        assert [(t["status"], t["error"]) for t in shown["turns"]] == [("completed", None)] * 2
    assert stored["status"] == {"type": "notLoaded"}
    assert {**stored, "status": live["status"]} == live


async def test_a_stored_thread_is_read_without_being_loaded(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
    async with session(tmp_path) as peer:
        for _ in range(2):
            read = await peer.request("thread/read", {"threadId": thread})
            assert read["result"]["thread"]["status"] == {"type": "notLoaded"}
        given = {"threadId": thread, "input": [{"type": "text", "text": "x"}]}
        error = (await peer.request("turn/start", given))["error"]
    assert "thread/resume" in error["message"]
