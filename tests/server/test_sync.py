"""The OS thread that syncs rollouts to disk."""

import logging
import threading
from pathlib import Path

import anyio
import pytest

from reference_server.rollout.records import Record
from reference_server.rollout.sync import Syncer
from reference_server.rollout.writer import MemoryRecorder

BOUND = 5.0


class SlowDisk:
    """A recorder whose sync waits until it may end, and says how often it was done."""

    def __init__(self, path: Path | None = Path("rollout")) -> None:
        self.path = path
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.synced = 0

    def append(self, record: Record) -> None:
        raise AssertionError(f"nothing is appended here: {record}")

    def records(self) -> None:
        return None

    def sync(self) -> None:
        self.begun.release()
        assert self.may_end.acquire(timeout=BOUND)
        self.synced += 1

    def close(self) -> None:
        raise AssertionError("the syncer closes nothing")


class FullDisk(SlowDisk):
    """A recorder whose sync fails."""

    def sync(self) -> None:
        raise OSError("no space left")


async def began(recorder: SlowDisk) -> bool:
    return await anyio.to_thread.run_sync(lambda: recorder.begun.acquire(timeout=BOUND))


async def test_requests_during_a_sync_share_the_next() -> None:
    syncer, disk = Syncer(), SlowDisk()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(syncer.run)
        syncer.request(disk)
        assert await began(disk)
        for _ in range(5):
            syncer.request(disk)
        disk.may_end.release(2)
        assert await began(disk)
        tasks.cancel_scope.cancel()
    assert disk.synced == 2


async def test_requested_syncs_are_done_before_the_end() -> None:
    syncer, first, second = Syncer(), SlowDisk(), SlowDisk()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(syncer.run)
        syncer.request(first)
        assert await began(first)
        syncer.request(second)
        first.may_end.release()
        second.may_end.release()
        tasks.cancel_scope.cancel()
    assert (first.synced, second.synced) == (1, 1)


async def test_a_failed_sync_is_logged_and_the_next_one_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    syncer, full, good = Syncer(), FullDisk(Path("full")), SlowDisk()
    good.may_end.release()
    with caplog.at_level(logging.ERROR):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(syncer.run)
            syncer.request(full)
            syncer.request(good)
            assert await began(good)
            tasks.cancel_scope.cancel()
    assert good.synced == 1
    assert "full: not synced to disk: no space left" in caplog.text


async def test_an_ephemeral_thread_is_never_synced() -> None:
    syncer = Syncer()
    syncer.request(MemoryRecorder())
    with anyio.move_on_after(0) as scope:
        await syncer.run()
    assert scope.cancelled_caught


async def test_a_syncer_that_nobody_asked_ends_at_once() -> None:
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Syncer().run)
            tasks.cancel_scope.cancel()
