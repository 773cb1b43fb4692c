"""Further processes that play conversations of one search, so that it uses all cores."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from harness.play.config import Config
from harness.search.fuzz.sessions.lanes import Job, Jobs
from harness.search.sequences.result import ConversationResult, decode_result
from harness.search.sequences.worker import first_message
from harness.search.worker_processes import WorkerLost, WorkerProcess, worker_process

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


@asynccontextmanager
async def further_processes(
    config: Config, name: str, number: int, lane_count: int
) -> AsyncGenerator[list[PlayerProcess]]:
    """Start `number` player processes, each with `lane_count` servers; end them after the block."""
    async with AsyncExitStack() as stack:
        players: list[PlayerProcess] = []
        for process in range(2, number + 2):
            first = first_message(config, f"{name}-p{process}", lane_count)
            opened = worker_process(first, "harness.search.sequences.worker")
            players.append(PlayerProcess(await stack.enter_async_context(opened), lane_count))
        yield players
