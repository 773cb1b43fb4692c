"""thread/list: content, filters, order, pages."""

from threading import Event
from typing import Any

import pytest
from anyio import to_thread
from model_side import says
from session_peer import Peer, session
from stored_threads import StoredHome

from reference_server.index.upkeep import Upkeep


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


@pytest.fixture
def stored(tmp_path) -> StoredHome:
    """Threads of every kind, the last one first: archived, another provider, folder, client."""
    home = StoredHome(tmp_path)
    home.add(1, preview="What is a Zebra?", cwd="/projects/a", provider="mock")
    home.add(2, preview="100% sure", cwd="/projects/a/b", provider="other", source="cli")
    home.add(3, preview="A zebra", cwd="/projects", provider="mock", source="exec")
    home.move(home.add(4, preview="Zebra, kept", cwd="/projects/a", provider="mock"))
    home.name(home.add(5, preview="first words"), "Named Zebra")
    return home


@pytest.mark.parametrize(
    ("params", "threads"),
    [
        ({}, [5, 3, 2, 1]),
        ({"archived": None, "modelProviders": None, "sourceKinds": None}, [5, 3, 2, 1]),
        ({"archived": False, "modelProviders": [], "sourceKinds": []}, [5, 3, 2, 1]),
        ({"archived": True}, [4]),
        ({"modelProviders": ["other"]}, [2]),
        ({"modelProviders": ["other", "mock", "mock"]}, [5, 3, 2, 1]),
        ({"modelProviders": [f"p{n}" for n in range(500)] + ["other"]}, [2]),
        ({"modelProviders": ["Other"]}, []),
        ({"sourceKinds": ["cli", "exec"]}, [3, 2]),
        ({"sourceKinds": ["appServer"]}, []),
        ({"cwd": "/projects/a"}, [1]),
        ({"cwd": "/projects/a/"}, []),
        ({"cwd": ""}, []),
        ({"cwd": "/projects/a", "archived": True}, [4]),
        ({"searchTerm": "Zebra"}, [5, 1]),
        ({"searchTerm": "ebr"}, [5, 3, 1]),
        ({"searchTerm": "br"}, [5, 3, 1]),
        ({"searchTerm": "%"}, [2]),
        ({"searchTerm": "_"}, []),
        ({"searchTerm": "first words"}, [5]),
        ({"searchTerm": ""}, [5, 3, 2, 1]),
        ({"searchTerm": "Zebra", "archived": True}, [4]),
        ({"searchTerm": "Zebra", "cwd": "/projects/a", "modelProviders": ["mock"]}, [1]),
    ],
)
async def test_a_filter_gives_what_it_says(stored, params: dict, threads: list[int]) -> None:
    async with session(stored.root) as peer:
        assert await listed(peer, **params) == [f"thr_{number}" for number in threads]
        assert await listed(peer, limit=1, **params) == [f"thr_{number}" for number in threads]


@pytest.mark.parametrize("thread", [1, 2, 3, 4, 5])
async def test_every_member_is_that_of_thread_read(stored, thread: int) -> None:
    async with session(stored.root) as peer:
        both = [
            one
            for archived in (False, True)
            for one in (await peer.request("thread/list", {"archived": archived}))["result"]["data"]
        ]
        (found,) = [one for one in both if one["id"] == f"thr_{thread}"]
        assert (
            found
            == (await peer.request("thread/read", {"threadId": found["id"]}))["result"]["thread"]
        )


async def test_an_update_brings_a_thread_to_the_front_of_the_order_by_update_alone(stored) -> None:
    stored.answer(stored.threads["thr_1"])
    async with session(stored.root) as peer:
        by_update = await listed(peer, sortKey="updated_at", limit=2)
        assert by_update == ["thr_1", "thr_5", "thr_3", "thr_2"]
        assert await listed(peer, sortKey="created_at") == ["thr_5", "thr_3", "thr_2", "thr_1"]


@pytest.mark.parametrize("word", ["a\0b", "\0", "Zebra'; DROP TABLE threads; --", '"', '""" OR "'])
async def test_odd_characters_are_searched_for_as_they_are(tmp_path, word: str) -> None:
    home = StoredHome(tmp_path)
    home.add(1, preview=f"before {word} after")
    home.add(2, preview="before a b after", cwd=f"/projects/{word}")
    async with session(tmp_path) as peer:
        assert await listed(peer, searchTerm=word) == ["thr_1"]
        assert await listed(peer, cwd=f"/projects/{word}") == ["thr_2"]
        assert await listed(peer, searchTerm=f"{word} after {word}") == []


async def test_a_word_of_a_megabyte_is_searched_for(tmp_path) -> None:
    word = "Zebra " * 170_000
    StoredHome(tmp_path).add(1, preview=f"{word}!")
    async with session(tmp_path) as peer:
        assert await listed(peer, searchTerm=word) == ["thr_1"]
        assert await listed(peer, searchTerm=f"{word}?") == []
        assert await listed(peer, cwd=word) == []


@pytest.mark.parametrize("limit", [0, -1, 1.5, "2", True, 1 << 70])
async def test_a_limit_that_is_no_number_of_threads_is_refused_unless_it_is_large(
    stored, limit: Any
) -> None:
    async with session(stored.root) as peer:
        answer = await peer.request("thread/list", {"limit": limit})
        if limit == 1 << 70:
            assert len(answer["result"]["data"]) == 4
        else:
            assert answer["error"]["code"] == -32602
            assert answer["error"]["message"].startswith("limit: ")


async def test_a_page_has_at_most_a_hundred_threads_and_25_where_no_number_is_named(
    tmp_path,
) -> None:
    home = StoredHome(tmp_path)
    for number in range(110):
        home.add(number)
    async with session(tmp_path) as peer:
        for given, size in (({}, 25), ({"limit": 26}, 26), ({"limit": 1_000_000}, 100)):
            result = (await peer.request("thread/list", given))["result"]
            assert len(result["data"]) == size
            assert result["nextCursor"] is not None


async def cursor_of(peer: Peer, **params: Any) -> str:
    result = (await peer.request("thread/list", {"limit": 1, **params}))["result"]
    return result["nextCursor"]


async def test_a_cursor_of_another_list_or_home_is_refused_with_the_reason(
    stored, tmp_path_factory
) -> None:
    async with session(stored.root) as peer:
        cursor = await cursor_of(peer)
        for other in (
            {"sortKey": "updated_at"},
            {"archived": True},
            {"cwd": "/projects"},
            {"searchTerm": "Zebra"},
            {"modelProviders": ["mock"]},
            {"sourceKinds": ["cli"]},
        ):
            error = (await peer.request("thread/list", {**other, "cursor": cursor}))["error"]
            assert error["code"] == -32602
            assert error["message"].startswith("cursor: came with another order or other filters")
        same = {"cursor": cursor, "limit": 2, "archived": None, "modelProviders": []}
        assert len((await peer.request("thread/list", same))["result"]["data"]) == 2
    async with session(tmp_path_factory.mktemp("elsewhere")) as peer:
        error = (await peer.request("thread/list", {"cursor": cursor}))["error"]
        assert (error["code"], error["message"][:7]) == (-32602, "cursor:")


async def test_a_cursor_is_good_for_the_next_server_of_the_home(stored) -> None:
    async with session(stored.root) as peer:
        cursor = await cursor_of(peer, limit=2)
    async with session(stored.root) as peer:
        result = (await peer.request("thread/list", {"cursor": cursor}))["result"]
    assert [thread["id"] for thread in result["data"]] == ["thr_2", "thr_1"]


async def test_a_damaged_cursor_is_refused_wherever_the_damage_is(stored) -> None:
    async with session(stored.root) as peer:
        cursor = await cursor_of(peer)
        damaged = [cursor[:place] + "~" + cursor[place + 1 :] for place in range(len(cursor))]
        swapped = [
            cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
            for place in range(0, len(cursor), 5)
        ]
        others = ["", " ", cursor + "A", cursor + "=", cursor[:-1], "AAAA", "x" * 1_000_000, "\0"]
        for text in (*damaged[::7], *swapped, *others):
            error = (await peer.request("thread/list", {"cursor": text}))["error"]
            assert error["code"] == -32602, text[:100]
            assert error["message"].startswith("cursor: is no cursor"), text[:100]


async def test_changes_of_our_own_threads_are_listed_at_once(tmp_path) -> None:
    async with session(tmp_path, [says("fine")]) as peer:
        first = await peer.start_thread()
        second = await peer.start_thread()
        assert await listed(peer) == [second, first]
        await peer.run_turn(first, "What is a Zebra?")
        assert await listed(peer, sortKey="updated_at") == [first, second]
        assert await listed(peer, searchTerm="Zebra") == [first]
        await peer.request("thread/name/set", {"threadId": second, "name": "Okapi"})
        assert await listed(peer, searchTerm="kap") == [second]
        await peer.request("thread/archive", {"threadId": second})
        assert await listed(peer) == [first]
        assert await listed(peer, archived=True) == [second]
        await peer.request("thread/unarchive", {"threadId": second})
        assert await listed(peer, sortKey="created_at") == [second, first]


async def test_changes_by_another_server_of_the_home_are_listed_at_once(tmp_path) -> None:
    async with session(tmp_path, [says("fine")]) as one, session(tmp_path) as other:
        assert await listed(other) == []
        thread = await one.start_thread()
        assert await listed(other) == [thread]
        await one.run_turn(thread, "What is a Zebra?")
        result = (await other.request("thread/list"))["result"]
        assert result["data"][0]["preview"] == "What is a Zebra?"
        await one.request("thread/archive", {"threadId": thread})
        assert await listed(other) == []
        assert await listed(other, archived=True) == [thread]


async def test_a_list_does_not_keep_the_next_request_waiting(stored, monkeypatch) -> None:
    begun, go_on = Event(), Event()

    def held(self: Upkeep, database: Any) -> None:
        begun.set()
        assert go_on.wait(10)
        build(self, database)

    build = Upkeep.build
    monkeypatch.setattr(Upkeep, "build", held)
    async with session(stored.root) as peer:
        asked = await peer.send("thread/list")
        await to_thread.run_sync(begun.wait, 10)
        read = await peer.request("thread/read", {"threadId": "thr_1"})
        assert read["result"]["thread"]["id"] == "thr_1"
        go_on.set()
        assert len((await peer.answer(asked))["result"]["data"]) == 4


@pytest.mark.slow
async def test_a_server_that_stops_does_not_wait_for_its_index_to_be_built(
    stored, monkeypatch
) -> None:
    begun = Event()
    read = Upkeep._reread

    def held(self: Upkeep, *given: Any, **more: Any) -> None:
        begun.set()
        assert self._given_up.wait(30)
        read(self, *given, **more)

    monkeypatch.setattr(Upkeep, "_reread", held)
    async with session(stored.root) as peer:
        await peer.send("thread/list")
        await to_thread.run_sync(begun.wait, 10)
        peer.server.stop()
    assert not list((stored.root / "index").glob("threads-*"))


@pytest.mark.slow
async def test_a_line_of_a_hundred_megabytes_is_passed_over(tmp_path) -> None:
    home = StoredHome(tmp_path)
    thread = home.add(1, preview="hello")
    with thread.path.open("ab") as file:
        file.write(b'{"type":"history","at":%.1f,"turnId":"turn_1","items":[' % (home.now + 1))
        for _ in range(100):
            file.write(b'"' + b"x" * 1_000_000 + b'",')
        file.write(b'""]}\n')
    home.name(thread, "after it")
    async with session(tmp_path) as peer:
        (found,) = (await peer.request("thread/list"))["result"]["data"]
    assert (found["name"], found["updatedAt"]) == ("after it", int(thread.updated))
