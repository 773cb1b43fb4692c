"""Ids that no two servers of one home share."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest
from model_side import says
from session_peer import session

from reference_server.config.home import Home
from reference_server.ids import Counters, IdAllocator
from reference_server.rollout.store import RolloutStore


def allocator(home: Path) -> IdAllocator:
    return IdAllocator(home / "counters", Counters)


async def test_numbers_start_at_one_and_go_on(tmp_path) -> None:
    ids = allocator(tmp_path)
    assert [await ids.new_thread_id() for _ in range(6)] == [f"thr_{n}" for n in range(1, 7)]
    assert [await ids.new_turn_id() for _ in range(130)] == [f"turn_{n}" for n in range(1, 131)]


def test_servers_of_one_home_never_give_the_same_id(tmp_path) -> None:
    servers = [allocator(tmp_path) for _ in range(4)]

    async def given(server: IdAllocator) -> list[str]:
        threads = [await server.new_thread_id() for _ in range(50)]
        return threads + [await server.new_turn_id() for _ in range(300)]

    def take(server: IdAllocator) -> list[str]:
        return anyio.run(given, server)

    with ThreadPoolExecutor(4) as pool:
        taken = [one for ids in pool.map(take, servers) for one in ids]
    assert len(taken) == len(set(taken)) == 1400


async def test_a_later_server_goes_on_after_an_earlier_one(tmp_path) -> None:
    first = allocator(tmp_path)
    given = {await first.new_thread_id(), await first.new_thread_id()}
    assert await allocator(tmp_path).new_thread_id() not in given


async def test_a_lost_or_damaged_counter_file_is_made_again_from_the_rollouts(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        threads = [await peer.start_thread() for _ in range(3)]
        thread = threads[-1]
        turn = await peer.start_turn(thread)
        await peer.turn_end(turn)
    counters = tmp_path / "counters"
    for damage in (counters.unlink, lambda: counters.write_bytes(b"thr" * 100)):
        damage()
        async with session(tmp_path, [says("b")]) as peer:
            later = await peer.start_thread()
            later_turn = await peer.start_turn(later)
            await peer.turn_end(later_turn)
        assert int(later.removeprefix("thr_")) > int(thread.removeprefix("thr_"))
        assert int(later_turn.removeprefix("turn_")) > int(turn.removeprefix("turn_"))
        thread, turn = later, later_turn


@pytest.mark.parametrize("line", ["threads -4 turns 7\n", f"threads {'9' * 60} turns 1\n", "", "x"])
async def test_a_broken_counter_is_made_again_from_the_rollouts(tmp_path, line: str) -> None:
    (tmp_path / "counters").write_text(line)
    ids = IdAllocator(tmp_path / "counters", lambda: Counters(5, 6))
    assert (await ids.new_thread_id(), await ids.new_turn_id()) == ("thr_6", "turn_7")
    assert (tmp_path / "counters").read_text() == "threads 9 turns 70\n"


async def test_a_counter_file_that_is_a_pipe_is_refused_by_name(tmp_path) -> None:
    os.mkfifo(tmp_path / "counters")
    with pytest.raises(OSError, match=r"is not a regular file: .*counters"):
        await allocator(tmp_path).new_thread_id()


async def test_files_that_are_not_rollouts_do_not_stop_the_search_for_ids(tmp_path) -> None:
    day = tmp_path / "sessions" / "2025" / "01" / "02"
    day.mkdir(parents=True)
    os.mkfifo(day / "rollout-a-thr_3.jsonl")
    (day / "rollout-a-thr_4.jsonl").mkdir()
    digits = "9" * 5000
    odd = f'{{"turnId":"turn_{digits}"}}\n{{"turnId":"turn_8"}}\n'
    (day / "rollout-a-thr_2.jsonl").write_text(odd)
    (day / f"rollout-a-thr_{'9' * 200}.jsonl").touch()
    assert RolloutStore(Home(tmp_path)).highest_ids() == Counters(4, 8)


async def test_others_are_served_while_the_counters_are_made_again(tmp_path) -> None:
    searching, may_end = anyio.Event(), threading.Event()

    def search() -> Counters:
        anyio.from_thread.run_sync(searching.set)
        assert may_end.wait(5)
        return Counters()

    ids = IdAllocator(tmp_path / "counters", search)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ids.new_thread_id)
            await searching.wait()
            may_end.set()
