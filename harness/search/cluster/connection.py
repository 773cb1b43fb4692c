"""A cluster of Dask: its workers are checked once, and then play the units of a run.

Dask hands out the units, and plays one again whose worker was killed. A unit is lost if that
happens to it again. A scheduler that goes away ends the run (`ClusterLost`).
"""

import asyncio
import json
import logging
import os
import uuid
from collections.abc import AsyncGenerator, Generator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from harness.errors import HarnessError, UsageError
from harness.play.config import Config
from harness.search.cluster.facts import Facts, differences, facts_of, facts_of_worker
from harness.search.cluster.programs import (
    MAX_LAST_SECONDS,
    ProgramSpec,
    end_programs,
    play_unit,
)
from harness.search.worker_processes import WorkerLost, encode_config

LOCAL = "local"
# Bound of reaching the scheduler, and of waiting for a first worker.
MAX_CONNECT_SECONDS = 10.0
# A run ends when it has had no worker for so long.
MAX_SECONDS_WITHOUT_WORKERS = 60.0
# Plays of a unit after a first one that was lost.
RETRIES = 1
_MAX_END_SECONDS = MAX_LAST_SECONDS + 30.0
# Ctrl-C of a terminal is the controller's; the programs of a worker do not inherit a handler.
_UNDISTURBED = "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n"
_SCHEDULER_LOST = "the scheduler of the cluster went away"


class ClusterLost(HarnessError):
    """Error: the scheduler went away, or no worker is left."""


class Cluster:
    """An open cluster, made by `open_cluster`.

    `slots` has the address of a worker for each unit that it plays at once. `problem` says how it
    was lost, "" if it was not.
    """

    def __init__(self, portal: BlockingPortal, client: Any, slots: list[str]) -> None:
        self._portal = portal
        self._client = client
        self.slots = slots
        self.problem = ""
        self._run = uuid.uuid4().hex

    def program(
        self, module: str, first: Mapping[str, Any], last: Mapping[str, Any] | None = None
    ) -> ProgramSpec:
        """Return a program of this run with its first message, and the last one if it has any."""
        return ProgramSpec(self._run, module, json.dumps(first), json.dumps(last) if last else "")

    def submit(
        self, slot: int, spec: ProgramSpec, job: Mapping[str, Any], bound: float | None = None
    ) -> Future[dict[str, Any]]:
        """Let a slot's worker play a unit, or another one if that is gone; return its result.

        The future raises `WorkerLost` if the unit is lost, `ClusterLost` if the cluster is.
        """
        return self._portal.start_task_soon(self._play, slot, spec, job, bound)

    def end_programs(self) -> list[dict[str, Any]]:
        """End the programs of this run on all workers; return the answers to last messages.

        A worker that does not answer gives none. Raises `ClusterLost` if there is no scheduler.
        """
        return self._portal.call(self._end_programs)

    async def _play(
        self, slot: int, spec: ProgramSpec, job: Mapping[str, Any], bound: float | None
    ) -> dict[str, Any]:
        self._require_connection()
        unit = self._client.submit(
            play_unit,
            spec,
            job,
            bound,
            key=f"harness-{self._run}-{uuid.uuid4().hex}",
            workers=[self.slots[slot]],
            allow_other_workers=True,
            retries=RETRIES,
        )
        try:
            return await self._result_of(unit)
        finally:
            if self._client.status == "running":
                with anyio.move_on_after(MAX_CONNECT_SECONDS, shield=True):
                    await self._client.cancel([unit])

    async def _result_of(self, unit: Any) -> dict[str, Any]:
        from distributed import CancelledError, KilledWorker

        while True:
            try:
                with anyio.move_on_after(MAX_SECONDS_WITHOUT_WORKERS):
                    return await unit
                if not await self._workers():
                    seconds = f"{MAX_SECONDS_WITHOUT_WORKERS:g} s"
                    raise self._note_loss(f"the cluster has had no worker for {seconds}")
            except KilledWorker as error:
                raise WorkerLost("each worker that played it was killed") from error
            except CancelledError as error:  # Also if a scheduler is there again: it knows no unit.
                raise self._note_loss(_SCHEDULER_LOST) from error

    async def _workers(self) -> Mapping[str, Any]:
        """Return the workers by their addresses."""
        self._require_connection()
        try:
            with anyio.fail_after(MAX_CONNECT_SECONDS):
                return (await self._client.scheduler.identity())["workers"]
        except (OSError, TimeoutError) as error:
            raise self._note_loss(_SCHEDULER_LOST) from error

    def _note_loss(self, problem: str) -> ClusterLost:
        self.problem = problem
        return ClusterLost(problem)

    def _require_connection(self) -> None:
        if self._client.status != "running":
            raise self._note_loss(_SCHEDULER_LOST)

    async def _end_programs(self) -> list[dict[str, Any]]:
        self._require_connection()
        answers: list[dict[str, Any]] = []

        async def end_on(worker: str) -> None:
            with anyio.move_on_after(_MAX_END_SECONDS), suppress(OSError):
                options: Any = {"workers": [worker], "on_error": "ignore"}
                there = await self._client.run(end_programs, self._run, **options)
                answers.extend(there.get(worker, []))

        async with anyio.create_task_group() as ending:
            for worker in await self._workers():
                ending.start_soon(end_on, worker)
        self._require_connection()
        return answers


@dataclass(frozen=True, slots=True)
class ClusterWorker:
    """One slot of a cluster for one program, as a worker process is used."""

    cluster: Cluster
    slot: int
    program: ProgramSpec
    bound: float | None = None

    async def ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Play a unit on this slot. Raises `WorkerLost` or `ClusterLost`."""
        future = self.cluster.submit(self.slot, self.program, job, self.bound)
        return await asyncio.wrap_future(future)


@contextmanager
def open_cluster(on: str, config: Config) -> Generator[Cluster]:
    """Connect to the scheduler `on`, or start one here for `local` or `local:WORKERS`.

    All workers are checked. Raises `UsageError` if the cluster cannot be used.
    """
    try:
        import dask.config
        import distributed
    except ImportError as error:
        advice = "pip install distributed cryptography (the extra [cluster] of this package)"
        raise UsageError(f"--on {on}: Dask is not installed; {advice}") from error
    logging.getLogger(distributed.__name__).setLevel(logging.CRITICAL)
    settings = {
        "distributed.comm.timeouts.connect": MAX_CONNECT_SECONDS,
        # Of the scheduler here; that of another is its own setting.
        "distributed.scheduler.allowed-failures": RETRIES,
    }
    with (
        dask.config.set(settings),
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_open_client(on)) as client,
    ):
        slots = portal.call(_checked_slots, on, client, config)
        cluster = Cluster(portal, client, slots)
        try:
            yield cluster
        finally:
            with suppress(ClusterLost):
                cluster.end_programs()


@asynccontextmanager
async def _open_client(on: str) -> AsyncGenerator[Any]:
    from distributed import Client, LocalCluster

    if on.partition(":")[0] != LOCAL:
        try:
            client = await Client(on, asynchronous=True, timeout=MAX_CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise UsageError(f"--on {on}: no scheduler answers; start `dask scheduler`") from error
        async with client:
            yield client
        return
    async with (
        LocalCluster(
            n_workers=_worker_count(on),
            threads_per_worker=1,
            protocol="tls://",
            security=True,  # Others on this machine could send it programs.
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            preload=[_UNDISTURBED],
            asynchronous=True,
        ) as local,
        Client(local, asynchronous=True) as client,
    ):
        yield client


def _worker_count(on: str) -> int:
    """Return the number in `local:4`, by default that of the processors."""
    _, colon, number = on.partition(":")
    if not colon:
        return os.cpu_count() or 1
    if not number.isdecimal() or int(number) < 1:
        raise UsageError(f"--on {on}: expected local, local:4, or the address of a scheduler")
    return int(number)


async def _checked_slots(on: str, client: Any, config: Config) -> list[str]:
    """Return the worker of each slot. Raises `UsageError` if one differs from this machine."""
    try:
        await client.wait_for_workers(1, timeout=MAX_CONNECT_SECONDS)
    except TimeoutError as error:
        raise UsageError(f"--on {on}: it has no worker; start `dask worker {on}`") from error
    encoded = encode_config(config)
    asked = asyncio.ensure_future(client.run(facts_of_worker, encoded, on_error="return"))
    here = await asyncio.to_thread(facts_of, config)
    there: dict[str, Facts | BaseException] = await asked
    problems: list[str] = []
    for worker, facts in sorted(there.items()):
        if isinstance(facts, BaseException):
            problems.append(f"worker {worker}: the harness cannot be used there: {facts}")
        else:
            problems += differences(worker, here, facts)
    if problems:
        raise UsageError(f"--on {on}: {'; '.join(problems)}")
    workers = (await client.scheduler.identity())["workers"]
    return [worker for worker in sorted(there) for _ in range(workers[worker]["nthreads"])]
