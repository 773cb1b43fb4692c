"""thread/archive and thread/unarchive: the file's place, notifications, rejected requests."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, delta, opened, says
from session_peer import another_client, session


async def ask(peer, operation: str, thread: str) -> dict[str, Any]:
    return await peer.request(f"thread/{operation}", {"threadId": thread})


def only_file(home: Path) -> Path:
    [path] = home.rglob("*.jsonl")
    return path


async def test_a_loaded_thread_is_unloaded_and_its_file_moved(tmp_path) -> None:
    async with session(tmp_path, [says("One.")]) as peer, another_client(peer) as other:
        await other.request("thread/loaded/list")
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        old = only_file(tmp_path)
        content = old.read_bytes()
        start = len(peer.seen)
        assert (await ask(peer, "archive", thread))["result"] == {}
        await peer.event("thread/archived", threadId=thread)
        assert peer.methods(start=start) == ["answer", "thread/status/changed", "thread/archived"]
        assert await other.event("thread/archived") == {"threadId": thread}
        new = only_file(tmp_path)
        assert new.relative_to(tmp_path / "archived_sessions") == old.relative_to(
            tmp_path / "sessions"
        )
        assert new.read_bytes() == content
        assert (await peer.request("thread/loaded/list"))["result"]["data"] == []
        read = (await ask(peer, "read", thread))["result"]["thread"]
        assert (read["path"], read["status"]) == (str(new), {"type": "notLoaded"})
        shown = (await ask(peer, "unarchive", thread))["result"]["thread"]
        assert (shown["id"], shown["path"], shown["turns"]) == (thread, str(old), [])
        assert await other.event("thread/unarchived") == {"threadId": thread}
        assert only_file(tmp_path) == old
        assert old.read_bytes() == content


async def test_a_stored_thread_is_archived_and_goes_on_when_it_is_back(tmp_path) -> None:
    async with session(tmp_path, [says("One.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
    async with session(tmp_path, [says("Two.")]) as peer:
        assert (await ask(peer, "archive", thread))["result"] == {}
        assert "thread/unarchive" in (await ask(peer, "resume", thread))["error"]["message"]
        rollback = {"threadId": thread, "numTurns": 1}
        refused = await peer.request("thread/rollback", rollback)
        assert "thread/unarchive" in refused["error"]["message"]
        given = {"threadId": thread, "input": [{"type": "text", "text": "x"}]}
        assert "error" in await peer.request("turn/start", given)
        assert len((await ask(peer, "fork", thread))["result"]["thread"]["turns"]) == 1
        await ask(peer, "unarchive", thread)
        await ask(peer, "resume", thread)
        assert (await peer.run_turn(thread))["status"] == "completed"


async def test_a_running_turn_is_interrupted_first(tmp_path) -> None:
    never = anyio.Event()
    async with session(tmp_path, [Reply([CREATED, opened(), delta("half"), never])]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/agentMessage/delta")
        await ask(peer, "archive", thread)
        await peer.event("thread/archived")
        ends = [m for m in peer.methods() if m in ("turn/completed", "thread/archived")]
        assert ends == ["turn/completed", "thread/archived"]
        assert (await peer.turn_end(turn))["status"] == "interrupted"
        asked = {"threadId": thread, "includeTurns": True}
        [shown] = (await peer.request("thread/read", asked))["result"]["thread"]["turns"]
        assert (shown["status"], shown["items"][1]["text"]) == ("interrupted", "half")


async def test_archiving_twice_and_restoring_what_is_not_archived_are_refused(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        assert "is not archived" in (await ask(peer, "unarchive", thread))["error"]["message"]
        await ask(peer, "archive", thread)
        place = only_file(tmp_path)
        assert "archived already" in (await ask(peer, "archive", thread))["error"]["message"]
        assert only_file(tmp_path) == place
        await ask(peer, "unarchive", thread)
        assert "is not archived" in (await ask(peer, "unarchive", thread))["error"]["message"]
        for operation in ("archive", "unarchive"):
            error = (await ask(peer, operation, "thr_99"))["error"]
            assert error["message"] == "there is no thread thr_99"
        told = [m for m in peer.methods() if "archived" in m]
    assert told == ["thread/archived", "thread/unarchived"]


async def test_an_ephemeral_thread_has_nothing_to_archive(tmp_path) -> None:
    async with session(tmp_path, [says("One.")]) as peer:
        thread = await peer.start_thread(ephemeral=True)
        assert "ephemeral" in (await ask(peer, "archive", thread))["error"]["message"]
        assert (await peer.run_turn(thread))["status"] == "completed"


@pytest.mark.parametrize("loaded", [True, False])
async def test_nothing_is_overwritten_and_the_thread_goes_on(tmp_path, loaded: bool) -> None:
    async with session(tmp_path, [says("One."), says("Two.")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        old = only_file(tmp_path)
        if not loaded:
            await ask(peer, "unsubscribe", thread)
        place = tmp_path / "archived_sessions" / old.relative_to(tmp_path / "sessions")
        place.parent.mkdir(parents=True)
        place.write_text("something else")
        error = (await ask(peer, "archive", thread))["error"]
        assert "in the way" in error["message"]
        assert str(place) in error["message"]
        assert place.read_text() == "something else"
        place.unlink()
        if not loaded:
            await ask(peer, "resume", thread)
        assert (await peer.run_turn(thread))["status"] == "completed"
        assert (await ask(peer, "archive", thread))["result"] == {}


async def test_who_resumes_while_it_is_archived_gets_one_or_the_other(tmp_path) -> None:
    async with session(tmp_path, [says("One.")] * 30) as peer, another_client(peer) as other:
        for number in range(10):
            thread = await peer.start_thread()
            await peer.run_turn(thread)
            first, second = (peer, other) if number % 2 else (other, peer)
            archived = await first.send("thread/archive", {"threadId": thread})
            resumed = await second.send("thread/resume", {"threadId": thread})
            assert "result" in await first.answer(archived)
            answer = await second.answer(resumed)
            read = (await ask(peer, "read", thread))["result"]["thread"]
            assert "archived_sessions" in read["path"]
            assert "error" in answer or read["status"] == {"type": "notLoaded"}
