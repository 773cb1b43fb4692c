"""thread/list: what is listed, filters, order, pages."""

from typing import Any

from model_side import says
from session_peer import Peer, session


async def listed(peer: Peer, **params: Any) -> list[str]:
    """The ids of all pages."""
    found: list[str] = []
    cursor = None
    while True:
        result = (await peer.request("thread/list", {**params, "cursor": cursor}))["result"]
        found += [thread["id"] for thread in result["data"]]
        if (cursor := result["nextCursor"]) is None:
            return found


async def test_a_home_without_threads_has_one_empty_page(tmp_path) -> None:
    async with session(tmp_path) as peer:
        result = (await peer.request("thread/list"))["result"]
    assert result == {"data": [], "nextCursor": None}


async def test_the_newest_come_first_and_each_comes_once_however_small_the_pages(tmp_path) -> None:
    async with session(tmp_path) as peer:
        threads = [await peer.start_thread() for _ in range(7)]
        for limit in (1, 2, 3, 7, 8, 100):
            assert await listed(peer, limit=limit) == threads[::-1]


async def test_a_stored_thread_is_listed_as_it_is_read(tmp_path) -> None:
    async with session(tmp_path, [says("fine")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "What is new?")
    async with session(tmp_path) as peer:
        (found,) = (await peer.request("thread/list"))["result"]["data"]
        read = (await peer.request("thread/read", {"threadId": thread}))["result"]["thread"]
    assert found == read
    assert (found["preview"], found["status"]) == ("What is new?", {"type": "notLoaded"})


async def test_a_loaded_thread_has_its_live_status(tmp_path) -> None:
    async with session(tmp_path) as peer:
        await peer.start_thread()
        (found,) = (await peer.request("thread/list"))["result"]["data"]
    assert found["status"] == {"type": "idle"}


async def test_an_ephemeral_thread_is_not_listed(tmp_path) -> None:
    async with session(tmp_path) as peer:
        await peer.start_thread(ephemeral=True)
        assert await listed(peer) == []
