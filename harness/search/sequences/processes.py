"""Further processes that play conversations of one search, so that it uses all cores."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from harness.play.config import Config
from harness.search.cluster.connection import Cluster, ClusterLost, ClusterWorker
from harness.search.fuzz.sessions.lanes import Job, Jobs
from harness.search.sequences.result import ConversationResult, decode_result
from harness.search.sequences.worker import first_message
from harness.search.worker_processes import WorkerLost, WorkerProcess, worker_process

WORKER = "harness.search.sequences.worker"
# Each step of a conversation has a bound of its own.
MAX_CONVERSATION_SECONDS = 300.0
# The search itself is one more.
MAX_FURTHER_PROCESSES = max(0, min(7, (os.cpu_count() or 1) - 1))


class PlayerProcess:
    """A worker process that plays `lane_count` conversations at once."""

    def __init__(self, worker: WorkerProcess, lane_count: int) -> None:
        self._worker = worker
        # One job more waits in the worker, so that no lane does.
        self._slot_count = lane_count + 1
        self._open: dict[int, tuple[Job, anyio.Event]] = {}
        self._is_lost = False

    async def play_jobs(
        self, jobs: Jobs, on_result: Callable[[int, ConversationResult], object]
    ) -> None:
        """Play jobs until none is left. If the worker is lost, its jobs are put back."""

        async def fill_slot() -> None:
            while (job := await jobs.take()) is not None:
                number, document = job
                answered = anyio.Event()
                self._open[number] = job, answered
                await self._worker.tell({"number": number, "document": document})
                await answered.wait()

        async def receive() -> None:
            while True:
                answer = await self._worker.receive()
                number = answer["number"]
                _, answered = self._open.pop(number)
                on_result(number, decode_result(answer["result"]))
                answered.set()

        if self._is_lost:
            return
        try:
            async with anyio.create_task_group() as receiving:
                receiving.start_soon(receive)
                async with anyio.create_task_group() as slots:
                    for _ in range(self._slot_count):
                        slots.start_soon(fill_slot)
                receiving.cancel_scope.cancel()
        except* WorkerLost:
            self._is_lost = True
            for job, _ in self._open.values():
                jobs.put_back(job)
            self._open.clear()


class ClusterPlayer:
    """The workers of a cluster, each of which plays one conversation in each of its slots.

    `problems` says which conversations it did not play, and why.
    """

    def __init__(self, cluster: Cluster, config: Config, name: str) -> None:
        self._cluster = cluster
        self._config = config
        self._name = name
        self.problems: list[str] = []
        self._is_lost = False

    async def play_jobs(
        self, jobs: Jobs, on_result: Callable[[int, ConversationResult], object]
    ) -> None:
        """Play jobs until none is left, or the cluster is lost. No job is put back."""
        try:
            async with anyio.create_task_group() as slots:
                for slot in range(len(self._cluster.slots)):
                    slots.start_soon(self._fill_slot, slot, jobs, on_result)
        except* ClusterLost as lost:
            self._is_lost = True
            self.problems.append(f"{lost.exceptions[0]}; the plan is not played to its end")

    async def _fill_slot(
        self, slot: int, jobs: Jobs, on_result: Callable[[int, ConversationResult], object]
    ) -> None:
        first = first_message(self._config, self._name, 1)
        program = self._cluster.program(WORKER, first)
        worker = ClusterWorker(self._cluster, slot, program, MAX_CONVERSATION_SECONDS)
        while not self._is_lost and (job := await jobs.take()) is not None:
            number, document = job
            unit = {"number": number, "document": document}
            try:
                answer = await worker.ask(unit)
            except WorkerLost as reason:
                self.problems.append(f"{document['title']!r} was not played: {reason}")
            else:
                on_result(number, decode_result(answer["result"]))


@asynccontextmanager
async def further_processes(
    config: Config, name: str, number: int, lane_count: int
) -> AsyncGenerator[list[PlayerProcess]]:
    """Start `number` player processes, each with `lane_count` servers; end them after the block."""
    async with AsyncExitStack() as stack:
        players: list[PlayerProcess] = []
        for process in range(2, number + 2):
            first = first_message(config, f"{name}-p{process}", lane_count)
            opened = worker_process(first, WORKER)
            players.append(PlayerProcess(await stack.enter_async_context(opened), lane_count))
        yield players
