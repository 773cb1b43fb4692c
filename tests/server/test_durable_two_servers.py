"""Two servers of one home at a time: each sees the other's changes, and damages none."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from kill_cases import CASES
from kill_player import HOME
from model_side import CREATED, Reply, completed, message, says
from session_peer import Peer, session
from test_durable_kills import (
    Player,
    check_next_turn,
    check_stored,
    read,
    told_by,
)

pytestmark = [pytest.mark.slow, pytest.mark.socket]
BOUND = 10


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    player = Player()
    yield player
    player.close()


async def listed(peer: Peer, **params: object) -> set[str]:
    data = (await peer.request("thread/list", params))["result"]["data"]
    assert len({thread["id"] for thread in data}) == len(data)
    return {thread["id"] for thread in data}


async def test_ids_never_clash_and_each_lists_the_threads_of_both(tmp_path: Path) -> None:
    replies = [says("x") for _ in range(6)]
    async with session(tmp_path, replies) as one, session(tmp_path, replies) as other:
        threads: list[str] = []
        turns: list[str] = []
        for peer in (one, other) * 6:
            threads.append(await peer.start_thread())
            turns.append((await peer.run_turn(threads[-1]))["id"])
            assert await listed(one) == await listed(other) == set(threads)
        assert len(set(threads)) == len(threads)
        assert len(set(turns)) == len(turns)


async def test_each_server_sees_what_the_other_does_to_its_threads(tmp_path: Path) -> None:
    async with session(tmp_path, [says("x")]) as one, session(tmp_path) as other:
        thread = await one.start_thread()
        await one.run_turn(thread, "zebra")
        assert await listed(other, searchTerm="zebra") == {thread}
        await one.request("thread/name/set", {"threadId": thread, "name": "heron"})
        # The server that gave the name writes it down a little later.
        with anyio.fail_after(BOUND):
            while await listed(other, searchTerm="heron") != {thread}:
                pass
        await one.request("thread/archive", {"threadId": thread})
        assert (await listed(other), await listed(other, archived=True)) == (set(), {thread})
        assert "result" in await other.request("thread/unarchive", {"threadId": thread})
        assert (await listed(one), await listed(one, archived=True)) == ({thread}, set())


@pytest.mark.parametrize("method", ["thread/archive", "thread/rollback", "thread/resume"])
async def test_a_thread_whose_turn_the_other_runs_is_left_alone(
    tmp_path: Path, method: str
) -> None:
    gate = anyio.Event()
    held = Reply([CREATED, gate, *message("done"), completed()])
    async with session(tmp_path, [says("one"), held]) as one, session(tmp_path) as other:
        thread = await one.start_thread()
        await one.run_turn(thread)
        turn = await one.start_turn(thread)
        await one.event("item/completed", turnId=turn)
        refused = await other.request(method, {"threadId": thread, "numTurns": 1})
        assert "open in another server" in refused["error"]["message"]
        fork = (await other.request("thread/fork", {"threadId": thread}))["result"]["thread"]
        assert [one["status"] for one in fork["turns"]] == ["completed", "interrupted"]
        shown = await read(other, thread)
        assert [one["status"] for one in shown["turns"]] == ["completed", "inProgress"]
        gate.set()
        assert (await one.turn_end(turn))["status"] == "completed"
        assert await read(one, thread) == {**await read(other, thread), "status": {"type": "idle"}}


@pytest.mark.parametrize("name", ["two commands", "patch", "steering", "interrupted text"])
async def test_a_running_server_takes_over_from_a_killed_one(
    player: Player, tmp_path: Path, name: str
) -> None:
    """The other server had begun before, so it settles nothing at its start."""
    case = CASES[name]
    for fatal in range(9, 40, 6):
        folder = tmp_path / str(fatal)
        async with session(folder / HOME, [says("Own."), says("Very well.")]) as running:
            mine = await running.start_thread()
            await running.run_turn(mine)
            played = await to_thread.run_sync(player.play, case, folder, fatal)
            told = told_by(played["told"])
            for thread_id in told.threads:
                thread = await read(running, thread_id)
                check_stored(told, thread)
                assert await listed(running) >= {mine, thread_id}
                await check_next_turn(running, case, [told], thread)
