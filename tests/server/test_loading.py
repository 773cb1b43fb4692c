"""thread/unsubscribe and thread/loaded/list: loaded threads, and when they are unloaded."""

import gc
import weakref

import anyio
import pytest
from model_side import CREATED, Reply, delta, opened, says
from session_peer import another_client, session


async def leave(peer, thread: str) -> str:
    answer = await peer.request("thread/unsubscribe", {"threadId": thread})
    return answer["result"]["status"]


async def loaded(peer, **params) -> dict:
    return (await peer.request("thread/loaded/list", params))["result"]


async def test_the_last_subscriber_to_leave_unloads_the_thread(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        start = len(peer.seen)
        assert await leave(peer, thread) == "unsubscribed"
        await peer.event("thread/closed", threadId=thread)
        assert peer.methods(start=start) == ["answer", "thread/status/changed", "thread/closed"]
        assert peer.seen[-2]["params"]["status"] == {"type": "notLoaded"}
        assert await leave(peer, thread) == "notLoaded"
        assert await loaded(peer) == {"data": [], "nextCursor": None}
        read = await peer.request("thread/read", {"threadId": thread})
        assert read["result"]["thread"]["status"] == {"type": "notLoaded"}
        error = (await peer.request("thread/unsubscribe", {"threadId": "thr_99"}))["error"]
        assert error["message"] == "there is no thread thr_99"


async def test_one_of_two_subscribers_leaves_the_thread_loaded(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer, another_client(peer) as other:
        thread = await peer.start_thread()
        assert await leave(other, thread) == "notSubscribed"
        await other.request("thread/resume", {"threadId": thread})
        assert await leave(peer, thread) == "unsubscribed"
        assert await leave(peer, thread) == "notSubscribed"
        assert (await loaded(peer))["data"] == [thread]
        turn = await other.start_turn(thread)
        await other.turn_end(turn)
        assert await leave(other, thread) == "unsubscribed"
        # Both learn that the thread is closed; only one was told of its turn.
        await peer.event("thread/closed", threadId=thread)
        await other.event("thread/closed", threadId=thread)
    assert peer.params_of("turn/started") == []


async def test_a_running_turn_is_interrupted_and_told_before_its_thread_is_unloaded(
    tmp_path,
) -> None:
    never = anyio.Event()
    reply = Reply([CREATED, opened(), delta("half a "), never])
    async with session(tmp_path, [reply, says("Go on.")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/agentMessage/delta")
        assert await leave(peer, thread) == "unsubscribed"
        await peer.event("thread/closed", threadId=thread)
        assert [m for m in peer.methods() if m in ("turn/completed", "thread/closed")] == [
            "turn/completed",
            "thread/closed",
        ]
        assert (await peer.turn_end(turn))["status"] == "interrupted"
        shown = (await peer.request("thread/resume", {"threadId": thread}))["result"]["thread"]
        assert shown["turns"][0]["items"][1]["text"] == "half a "
        await peer.run_turn(thread)
        assert "half a " in str(peer.side.bodies[-1]["input"])


async def test_an_ephemeral_thread_is_gone_when_it_is_unloaded(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        thread = await peer.start_thread(ephemeral=True)
        await peer.run_turn(thread)
        shown = (await peer.request("thread/resume", {"threadId": thread}))["result"]["thread"]
        assert (shown["path"], len(shown["turns"][0]["items"])) == (None, 2)
        assert await leave(peer, thread) == "unsubscribed"
        assert "error" in await peer.request("thread/resume", {"threadId": thread})
    assert list(tmp_path.rglob("*.jsonl")) == []


async def test_a_client_that_just_goes_leaves_its_threads_loaded(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        async with another_client(peer) as other:
            thread = await other.start_thread()
        assert (await loaded(peer))["data"] == [thread]
        assert await leave(peer, thread) == "notSubscribed"
        await peer.request("thread/resume", {"threadId": thread})
        assert (await peer.run_turn(thread))["status"] == "completed"


async def test_loaded_threads_are_listed_page_by_page(tmp_path) -> None:
    async with session(tmp_path) as peer:
        threads = [await peer.start_thread() for _ in range(12)]
        first = await loaded(peer, limit=5)
        assert first == {"data": threads[:5], "nextCursor": threads[4]}
        # What was shown last is unloaded, and another one comes: no other is left out or repeated.
        await leave(peer, threads[4])
        threads.append(await peer.start_thread())
        second = await loaded(peer, limit=5, cursor=first["nextCursor"])
        third = await loaded(peer, limit=5, cursor=second["nextCursor"])
        assert second["data"] + third["data"] == threads[5:]
        assert third["nextCursor"] is None
        assert (await loaded(peer, limit=12))["nextCursor"] is None
        assert (await loaded(peer))["data"] == [*threads[:4], *threads[5:]]


@pytest.mark.parametrize(
    "params", [{"limit": 0}, {"limit": -1}, {"limit": 1.5}, {"cursor": "x"}, {"cursor": ""}]
)
async def test_an_invalid_page_is_refused(tmp_path, params: dict) -> None:
    async with session(tmp_path) as peer:
        error = (await peer.request("thread/loaded/list", params))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith(f"{next(iter(params))}: ")


async def test_an_unloaded_thread_leaves_nothing_in_memory(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        [kept] = map(weakref.ref, peer.server.services.threads.loaded_threads)
        await leave(peer, thread)
        await peer.request("thread/loaded/list")
        gc.collect()
        assert kept() is None
