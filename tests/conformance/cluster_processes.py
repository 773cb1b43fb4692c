"""A Dask cluster as forks of a process that has imported Dask and the harness."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from .judging import MARK

IMPORTED = ("distributed", "harness.search.cluster.connection", "harness.search.cluster.player")
MAX_START_SECONDS = 30.0
HOST: Mapping[str, Any] = {
    "host": "127.0.0.1",
    "dashboard": False,
    "dashboard_address": "127.0.0.1:0",
}


@cache
def _forks() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(MARK, raising=False)  # It outlives the test.
        patch.setenv("DASK_LOGGING__DISTRIBUTED", "50")
        forkserver.ensure_running()
    return context


class DaskCluster:
    """A scheduler at `address` and its workers, each with one thread; their home is `folder`.

    `allowed_failures` is the scheduler's setting.
    """

    def __init__(self, folder: Path, workers: int, allowed_failures: int) -> None:
        self._folder = folder
        self._env = {**os.environ, "HARNESS_DIR": str(folder)}
        self.workers: list[BaseProcess] = []
        self.scheduler, self.address = self._start(_schedule, allowed_failures)
        for _ in range(workers):
            self.workers.append(self._start(_work, self.address)[0])

    def _start(
        self, serve: Callable[[Any, Connection], Coroutine[Any, Any, None]], value: Any
    ) -> tuple[BaseProcess, str]:
        ours, theirs = multiprocessing.Pipe()
        arguments = (serve, value, theirs, str(self._folder), self._env)
        process = _forks().Process(target=_begin, args=arguments, daemon=True)
        process.start()
        theirs.close()
        assert ours.poll(MAX_START_SECONDS)
        return process, ours.recv()

    def close(self) -> None:
        """Kill all processes."""
        for process in (self.scheduler, *self.workers):
            process.kill()
            process.join()


@contextmanager
def dask_cluster(
    folder: Path, workers: int = 2, allowed_failures: int = 1
) -> Generator[DaskCluster]:
    """Start a cluster and kill it after the block."""
    cluster = DaskCluster(folder, workers, allowed_failures)
    try:
        yield cluster
    finally:
        cluster.close()


def _begin(
    serve: Callable[[Any, Connection], Coroutine[Any, Any, None]],
    value: Any,
    started: Connection,
    folder: str,
    env: dict[str, str],
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    asyncio.run(serve(value, started))


async def _schedule(allowed_failures: int, started: Connection) -> None:
    import dask.config
    from distributed import Scheduler

    dask.config.set({"distributed.scheduler.allowed-failures": allowed_failures})
    async with Scheduler(port=0, **HOST) as scheduler:
        started.send(scheduler.address)
        await scheduler.finished()


async def _work(scheduler: str, started: Connection) -> None:
    from distributed import Worker

    async with Worker(scheduler, nthreads=1, **HOST) as worker:
        started.send(worker.address)
        await worker.finished()
