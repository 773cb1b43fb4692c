"""Threads whose clients have all left a listening server: which stay loaded."""

from pathlib import Path

import anyio
import pytest
from listening_peer import KINDS, listening
from model_side import Reply, delta, opened, says

from reference_server import abandoned

pytestmark = [pytest.mark.socket]


async def test_latest_abandoned_threads_stay_loaded_and_others_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abandoned, "MAX_ABANDONED_THREADS", 1)
    replies = [says("one"), says("two")]
    async with (
        listening(tmp_path / "home", KINDS[0], replies) as server,
        server.client() as other,
    ):
        kept = await other.start_thread()
        async with server.client() as leaver:
            threads = [await leaver.start_thread() for _ in range(3)]
            await leaver.run_turn(threads[0])
        for closed in threads[1:]:
            await other.event("thread/closed", threadId=closed)
        listed = (await other.request("thread/loaded/list", {}))["result"]["data"]
        assert set(listed) == {kept, threads[0]}
        resumed = await other.request("thread/resume", {"threadId": threads[2]})
        assert resumed["result"]["thread"]["status"] == {"type": "idle"}
        assert (await other.run_turn(threads[2]))["status"] == "completed"


async def test_thread_with_a_turn_is_not_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abandoned, "MAX_ABANDONED_THREADS", 0)
    gate = anyio.Event()
    reply = Reply([opened(), delta("Hel"), gate, *says("Hel", "lo").parts[-2:]])
    async with (
        listening(tmp_path / "home", KINDS[0], [reply]) as server,
        server.client() as other,
    ):
        await other.request("thread/loaded/list", {})
        async with server.client() as leaver:
            idle, busy = [await leaver.start_thread() for _ in range(2)]
            await leaver.start_turn(busy)
            await leaver.event("item/agentMessage/delta")
        assert (await other.event("thread/closed"))["threadId"] == idle
        listed = (await other.request("thread/loaded/list", {}))["result"]["data"]
        assert listed == [busy]
        gate.set()
