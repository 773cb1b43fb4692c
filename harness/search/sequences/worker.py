"""Worker process of a search with sequences: it plays conversations on lanes of its own.

The first line of its input has the options and the worker's name. Then each line is a document to
play, with its number; it is answered with the result, in the order in which plays end. The end of
the input ends the worker. If the server cannot be started here at all, it ends by itself.
"""

import json
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from typing import Any, BinaryIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from harness.judge.verdict import Level
from harness.play.bench import open_bench
from harness.play.config import Config
from harness.play.session.servers import SetupFailed
from harness.search.fuzz.sessions.lanes import Job, Lanes
from harness.search.fuzz.sessions.play import Played
from harness.search.sequences.result import result_of
from harness.search.worker_processes import decode_config, encode_config


def first_message(config: Config, name: str, lane_count: int) -> dict[str, Any]:
    """Return the first line for a worker called `name`, with `lane_count` servers at once."""
    return {"config": encode_config(config), "name": name, "lanes": lane_count}


class _Input:
    """Jobs from the lines of the input."""

    def __init__(self, jobs: MemoryObjectReceiveStream[Job]) -> None:
        self._jobs = jobs
        self._returned: list[Job] = []

    async def take(self) -> Job | None:
        """Return the next job, None after the end of the input."""
        if self._returned:
            return self._returned.pop()
        try:
            return await self._jobs.receive()
        except anyio.EndOfStream:
            return None

    def put_back(self, job: Job) -> None:
        """Return a job that was taken and not played."""
        self._returned.append(job)


class _Spoiled:
    """Decides on which processes something went wrong. A problem counts when it is new here."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, played: Played) -> bool:
        problems = {
            (problem.cause, problem.occasion)
            for problem in played.problems
            if problem.level is not Level.INFO
        }
        new = problems - self._seen
        self._seen |= new
        return bool(new)


async def _read(source: BinaryIO, jobs: MemoryObjectSendStream[Job]) -> None:
    async with jobs:
        while line := await anyio.to_thread.run_sync(source.readline, abandon_on_cancel=True):
            job = json.loads(line)
            await jobs.send((job["number"], job["document"]))


async def _write(sink: BinaryIO, answers: MemoryObjectReceiveStream[bytes]) -> None:
    async for line in answers:
        await anyio.to_thread.run_sync(sink.write, line)
        await anyio.to_thread.run_sync(sink.flush)


async def _end_at_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def work(source: BinaryIO, sink: BinaryIO) -> None:
    """Play the documents of `source`; write the results to `sink`."""
    settings = json.loads(source.readline())
    config = decode_config(settings["config"])
    send_job, jobs = anyio.create_memory_object_stream[Job]()
    # Unbounded, since each answer follows a job that was taken.
    send_answer, answers = anyio.create_memory_object_stream[bytes](float("inf"))

    def answer(number: int, played: Played) -> None:
        line = {"number": number, "result": result_of(played).encode()}
        send_answer.send_nowait(json.dumps(line).encode() + b"\n")

    async with AsyncExitStack() as stack:
        benches = [
            await stack.enter_async_context(
                open_bench(
                    config.profile,
                    config.book,
                    base=config.base,
                    worker=f"{settings['name']}-{lane}",
                    scale=config.scale,
                )
            )
            for lane in range(1, settings["lanes"] + 1)
        ]
        async with send_answer, answers, jobs, anyio.create_task_group() as tasks:
            tasks.start_soon(_end_at_signal, tasks.cancel_scope)
            tasks.start_soon(_read, source, send_job)
            tasks.start_soon(_write, sink, answers)
            # If the server cannot be started here, the search goes on without this worker.
            with suppress(SetupFailed):
                await Lanes(config, benches).play_jobs(_Input(jobs), answer, _Spoiled())
            tasks.cancel_scope.cancel()


def main() -> None:
    """Work on standard input and output; whatever is printed meanwhile goes to standard error."""
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    anyio.run(work, sys.stdin.buffer, sink)


if __name__ == "__main__":
    main()
