"""thread/name/set, and the source of a thread."""

import pytest
from model_side import says
from session_peer import another_client, session


async def named(peer, thread: str, name: str) -> dict:
    return await peer.request("thread/name/set", {"threadId": thread, "name": name})


async def read(peer, thread: str) -> dict:
    return (await peer.request("thread/read", {"threadId": thread}))["result"]["thread"]


async def test_a_name_is_told_to_every_client_and_survives_a_restart(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer, another_client(peer) as other:
        thread = await peer.start_thread()
        await other.request("thread/loaded/list")
        assert "name" not in await read(peer, thread)
        assert (await named(peer, thread, "  Löwe \U0001f981 ")) == {"id": 3, "result": {}}
        for client in (peer, other):
            told = await client.event("thread/name/updated")
            assert told == {"threadId": thread, "threadName": "Löwe \U0001f981"}
        assert peer.methods()[-2:] == ["answer", "thread/name/updated"]
        await peer.run_turn(thread)
        assert (await read(peer, thread))["name"] == "Löwe \U0001f981"
    async with session(tmp_path) as peer:
        assert (await read(peer, thread))["name"] == "Löwe \U0001f981"
        # A thread that is not loaded is named without being loaded.
        await named(peer, thread, "another")
        assert (await peer.request("thread/loaded/list"))["result"]["data"] == []
        assert (await read(peer, thread))["name"] == "another"
        shown = await peer.request("thread/resume", {"threadId": thread})
        assert shown["result"]["thread"]["name"] == "another"
        await named(peer, thread, " ")
        told = await peer.event("thread/name/updated", threadName=None)
        assert told == {"threadId": thread, "threadName": None}
        assert "name" not in await read(peer, thread)


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x00b", "\x1b[31mred", "a\u202eb", "a" * 1001, "a" * 2**20]
)
async def test_a_name_that_no_list_can_show_is_refused(tmp_path, name: str) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        error = (await named(peer, thread, name))["error"]
        assert (error["code"], error["message"][:6]) == (-32602, "name: ")
        assert len(error["message"]) < 200
        assert "name" not in await read(peer, thread)
        assert "result" in await named(peer, thread, "a" * 1000)


async def test_an_ephemeral_thread_is_named_in_memory(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread(ephemeral=True)
        await named(peer, thread, "brief")
        assert (await read(peer, thread))["name"] == "brief"
    assert list(tmp_path.rglob("*.jsonl")) == []


@pytest.mark.parametrize(
    ("client", "source"),
    [("vscode", "vscode"), ("cli", "cli"), ("exec", "exec"), ("my tool", "appServer")],
)
async def test_the_source_of_a_thread_is_the_kind_of_its_client(
    tmp_path, client: str, source: str
) -> None:
    async with session(tmp_path) as peer:
        async with another_client(peer, client) as other:
            thread = await other.start_thread()
            assert (await read(other, thread))["source"] == source
        plain = await peer.start_thread()
        assert (await read(peer, plain))["source"] == "appServer"
    async with session(tmp_path) as peer:
        assert (await read(peer, thread))["source"] == source
