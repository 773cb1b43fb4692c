"""Several clients of a server that speaks as a release: who is told of the turns of others."""

from typing import Any

import anyio
import pytest
from listening_peer import listening
from model_side import Reply, delta, opened, says
from session_peer import Peer

pytestmark = [pytest.mark.socket]

STATUS, STARTED = "thread/status/changed", "turn/started"
RELEASES = pytest.mark.parametrize("release", ["codex-0.107", "codex-0.169"])


async def initialize(peer: Peer, *unwanted: str) -> None:
    capabilities = {"optOutNotificationMethods": list(unwanted)}
    client = {"name": "me", "version": "1"}
    params = {"clientInfo": client, "capabilities": capabilities}
    await peer.request("initialize", params)


async def told(peer: Peer) -> list[str]:
    """Return what a client read of threads and turns, up to the answer of a last request."""
    await peer.request("thread/loaded/list", {})
    return [name for name in peer.methods() if name.startswith(("thread/", "turn/", "item/"))]


def turns(release: str, count: int) -> list[str]:
    """Return what a client without a subscription is told of turns of others."""
    return ([STARTED] * (release == "codex-0.107") + [STATUS, STATUS]) * count


def statuses(peer: Peer) -> list[Any]:
    return [params["status"]["type"] for params in peer.params_of(STATUS)]


@RELEASES
async def test_turns_are_told_to_all_who_have_begun_and_want_it(tmp_path, release: str) -> None:
    async with (
        listening(tmp_path / "home", replies=[says("a"), says("b")], dialect=release) as server,
        server.client() as first,
        server.client() as other,
        server.client() as unwilling,
        server.client() as silent,
    ):
        await initialize(first)
        await initialize(other)
        await initialize(unwilling, STATUS, STARTED)
        thread = await first.start_thread()
        for _ in range(2):
            await first.run_turn(thread)
        opened_by_another = [STATUS] * (release == "codex-0.107") + ["thread/started"]
        assert await told(other) == [*opened_by_another, *turns(release, 2)]
        assert statuses(other)[-4:] == ["active", "idle"] * 2
        assert await told(unwilling) == ["thread/started"]
        await initialize(silent)
        assert await told(silent) == []
        # Both read the same of what both are told.
        for method in (STATUS, STARTED):
            assert [m["threadId"] for m in other.params_of(method)] == [thread] * len(
                other.params_of(method)
            )
        assert statuses(first) == statuses(other)


@RELEASES
async def test_a_client_that_subscribes_and_leaves_is_told_once_of_each_turn(
    tmp_path, release: str
) -> None:
    replies = [says("a"), says("b"), says("c")]
    async with (
        listening(tmp_path / "home", replies=replies, dialect=release) as server,
        server.client() as first,
        server.client() as other,
    ):
        await initialize(first)
        await initialize(other)
        thread = await first.start_thread()
        await first.run_turn(thread)
        await other.request("thread/resume", {"threadId": thread})
        await other.turn_end((await first.run_turn(thread))["id"])
        await other.request("thread/unsubscribe", {"threadId": thread})
        start = len(other.seen)
        await first.run_turn(thread)
        await other.request("thread/loaded/list", {})
        assert other.methods(start=start) == [*turns(release, 1), "answer"]
        count = 6 + (release == "codex-0.107")
        assert statuses(other)[-6:] == ["active", "idle"] * 3
        assert (len(statuses(other)), len(other.params_of("turn/completed"))) == (count, 1)


@RELEASES
async def test_a_client_that_does_not_read_or_leaves_holds_up_nobody(
    tmp_path, release: str
) -> None:
    gate = anyio.Event()
    held = Reply([opened(), delta("Hel"), gate, *says("Hel", "lo").parts[-2:]])
    replies = [held, *(says(str(number)) for number in range(20))]
    async with (
        listening(tmp_path / "home", replies=replies, dialect=release) as server,
        server.client() as first,
        server.client(max_queue=1) as slow,
    ):
        await initialize(first)
        await initialize(slow)
        async with server.client() as leaving:
            await initialize(leaving)
            thread = await first.start_thread()
            turn = await first.start_turn(thread)
            await leaving.event(STATUS, status={"type": "active", "activeFlags": []})
        gate.set()
        assert (await first.turn_end(turn))["status"] == "completed"
        for _ in range(20):
            await first.run_turn(thread)
        assert (await told(slow))[-len(turns(release, 21)) :] == turns(release, 21)
