"""Long waits of the server: idle models, retries, open approvals, suspends and set clocks."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import CREATED, CUT, Part, Refused, Reply, calls, completed, message, says
from session_peer import Peer, config, session
from virtual_time import BACKEND, VirtualTime

pytestmark = pytest.mark.anyio

HOUR = 3600.0
DAY = 24 * HOUR
IDLE_SECONDS = 300.0  # `stream_idle_timeout_ms` by default


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    return BACKEND


def silent() -> Reply:
    return Reply([CREATED, anyio.Event()])


async def retry_notices(peer: Peer, count: int) -> None:
    """Wait until the server has announced so many retries."""
    while len(peer.params_of("error")) < count:
        await peer.receive()


async def test_a_model_that_falls_silent_is_asked_again_after_the_idle_timeout(
    tmp_path: Path,
) -> None:
    settings = config(stream_max_retries=2, stream_idle_timeout_ms=int(IDLE_SECONDS * 1000))
    replies = [silent(), silent(), says("at last")]
    async with session(tmp_path, replies, settings=settings) as peer:
        clock = VirtualTime()
        turn = await peer.start_turn(await peer.start_thread())
        await peer.event("turn/started")
        for count in (1, 2):
            await clock.advance(IDLE_SECONDS - 5)
            assert len(peer.side.bodies) == count
            await clock.advance(5)
            await retry_notices(peer, count)
            await clock.advance(10)  # the pause before the retry
        assert (await peer.turn_end(turn))["status"] == "completed"
    assert clock.elapsed() > 2 * IDLE_SECONDS


async def test_a_model_that_is_never_heard_fails_the_turn_with_the_last_retry(
    tmp_path: Path,
) -> None:
    settings = config(stream_max_retries=5)
    async with session(tmp_path, [silent() for _ in range(6)], settings=settings) as peer:
        clock = VirtualTime()
        turn = await peer.start_turn(await peer.start_thread())
        for count in range(1, 6):
            await clock.advance(IDLE_SECONDS)
            await retry_notices(peer, count)
            await clock.advance(15)
        await clock.advance(IDLE_SECONDS)
        assert (await peer.turn_end(turn))["status"] == "failed"
        assert len(peer.side.bodies) == 6


async def test_a_model_that_says_a_word_in_each_idle_time_is_heard_for_a_day(
    tmp_path: Path,
) -> None:
    gates = [anyio.Event() for _ in range(20)]
    parts: list[Part] = [CREATED]
    for gate in gates:
        parts += [gate, b": still here\n\n"]
    async with session(tmp_path, [Reply([*parts, *message("so"), completed()])]) as peer:
        clock = VirtualTime()
        turn = await peer.start_turn(await peer.start_thread())
        for gate in gates:
            await clock.advance(IDLE_SECONDS - 1)
            gate.set()
        assert (await peer.turn_end(turn))["status"] == "completed"
        assert peer.params_of("error") == []
        assert clock.elapsed() > 1.6 * HOUR


async def test_a_provider_is_left_alone_for_as_long_as_it_asks(tmp_path: Path) -> None:
    busy = Reply([b'{"error":{"code":"rate_limit_exceeded"}}'], 429, {"retry-after": "240"})
    settings = config(request_max_retries=1)
    async with session(tmp_path, [busy, says("now")], settings=settings) as peer:
        clock = VirtualTime()
        turn = await peer.start_turn(await peer.start_thread())
        await retry_notices(peer, 1)
        await clock.advance(235)
        assert len(peer.side.bodies) == 1
        await clock.advance(5)
        assert (await peer.turn_end(turn))["status"] == "completed"


async def test_an_interrupt_ends_a_long_pause_at_once(tmp_path: Path) -> None:
    busy = Reply([b"{}"], 503, {"retry-after": "300"})
    settings = config(request_max_retries=1)
    async with session(tmp_path, [busy, says("never")], settings=settings) as peer:
        clock = VirtualTime()
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await retry_notices(peer, 1)
        await clock.advance(1)
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert (await peer.turn_end(turn))["status"] == "interrupted"
        await clock.advance(HOUR)
        assert len(peer.side.bodies) == 1


async def test_the_pauses_between_refused_calls_grow_and_are_counted(tmp_path: Path) -> None:
    settings = config(request_max_retries=4, retry_delay_ms=1000)
    replies = [*(Refused() for _ in range(4)), says("there")]
    async with session(tmp_path, replies, settings=settings) as peer:
        clock = VirtualTime()
        turn = await peer.start_turn(await peer.start_thread())
        for count, pause in enumerate((1, 2, 4, 8), 1):
            await retry_notices(peer, count)
            await clock.advance(pause * 0.6)
            assert len(peer.side.bodies) == count
            await clock.advance(pause * 0.5)  # it varies by a tenth
        assert (await peer.turn_end(turn))["status"] == "completed"


async def test_a_question_stays_open_for_a_week(tmp_path: Path) -> None:
    replies = [calls("exec_command", cmd="touch made"), says("done")]
    async with session(tmp_path, replies) as peer:
        clock = VirtualTime()
        thread = await peer.start_thread(approvalPolicy="untrusted", cwd=str(tmp_path))
        turn = await peer.start_turn(thread)
        question = await peer.asked()
        await clock.advance(7 * DAY)
        found = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
        assert found["result"]["thread"]["turns"][-1]["status"] == "inProgress"
        assert "turn/completed" not in peer.methods()
        await peer.decide(question, "decline")
        assert (await peer.turn_end(turn))["status"] == "completed"


async def test_a_machine_that_slept_through_an_answer_asks_again(tmp_path: Path) -> None:
    settings = config(stream_max_retries=1)
    broken = Reply([CREATED, *message("half")[:2], anyio.Event(), CUT])
    async with session(tmp_path, [broken, says("whole")], settings=settings) as peer:
        clock = VirtualTime()
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/agentMessage/delta")
        await clock.advance(8 * HOUR)  # the lid was closed
        await retry_notices(peer, 1)
        await clock.advance(10)
        assert (await peer.turn_end(turn))["status"] == "completed"
        read = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
        assert [one["status"] for one in read["result"]["thread"]["turns"]] == ["completed"]


@pytest.mark.parametrize("jump", [-HOUR, HOUR, -DAY * 400, DAY * 400], ids=lambda one: f"{one:+}")
async def test_a_clock_that_is_set_while_a_server_runs_breaks_no_thread(
    tmp_path: Path, jump: float
) -> None:
    clock = VirtualTime()
    replies = [says("one"), says("two"), says("three")]
    async with session(tmp_path, replies, clock=clock.now) as peer:
        first = await peer.start_thread()
        assert (await peer.run_turn(first))["status"] == "completed"
        clock.jump(jump)
        assert (await peer.run_turn(first))["status"] == "completed"
        second = await peer.start_thread()
        assert (await peer.run_turn(second))["status"] == "completed"
        listed = (await peer.request("thread/list", {}))["result"]["data"]
        assert {one["id"] for one in listed} == {first, second}
        for one in listed:
            assert one["updatedAt"] >= one["createdAt"]
        read = await peer.request("thread/read", {"threadId": first, "includeTurns": True})
        assert len(read["result"]["thread"]["turns"]) == 2


async def test_pages_of_a_list_hold_each_thread_once_when_the_clock_is_set_between_them(
    tmp_path: Path,
) -> None:
    clock = VirtualTime()
    async with session(tmp_path, [says("so") for _ in range(6)], clock=clock.now) as peer:
        threads = [await peer.start_thread() for _ in range(4)]
        for thread in threads:
            await peer.run_turn(thread)
            clock.jump(-HOUR)
        pages: list[str] = []
        cursor: str | None = None
        while True:
            given = {"limit": 1} if cursor is None else {"limit": 1, "cursor": cursor}
            page = (await peer.request("thread/list", given))["result"]
            pages += [one["id"] for one in page["data"]]
            clock.jump(HOUR / 2)
            if not (cursor := page.get("nextCursor")):
                break
        assert sorted(pages) == sorted(threads)
