"""Ids that no two servers of one home share."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from model_side import says
from session_peer import session

from reference_server.ids import Counters, IdAllocator


def allocator(home: Path) -> IdAllocator:
    return IdAllocator(home / "counters", Counters)


def test_numbers_start_at_one_and_go_on(tmp_path) -> None:
    ids = allocator(tmp_path)
    assert [ids.thread_id() for _ in range(6)] == [f"thr_{n}" for n in range(1, 7)]
    assert [ids.turn_id() for _ in range(130)] == [f"turn_{n}" for n in range(1, 131)]


def test_servers_of_one_home_never_give_the_same_id(tmp_path) -> None:
    servers = [allocator(tmp_path) for _ in range(4)]

    def take(server: IdAllocator) -> list[str]:
        return [server.thread_id() for _ in range(50)] + [server.turn_id() for _ in range(300)]

    with ThreadPoolExecutor(4) as pool:
        taken = [one for ids in pool.map(take, servers) for one in ids]
    assert len(taken) == len(set(taken)) == 1400


def test_a_later_server_goes_on_after_an_earlier_one(tmp_path) -> None:
    first = allocator(tmp_path)
    given = {first.thread_id(), first.thread_id()}
    assert allocator(tmp_path).thread_id() not in given


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
