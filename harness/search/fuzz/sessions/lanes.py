"""Several servers of one target at once, since sessions mostly wait."""

import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

import anyio
from anyio.from_thread import BlockingPortal

from harness.play.bench import Bench, open_bench
from harness.play.config import Config
from harness.play.session.servers import SetupFailed
from harness.search.fuzz.sessions.play import Played, play
from harness.search.fuzz.sessions.turns import Json

# Two more than processors, within limits; each lane has a server and a model.
MAX_LANES = max(2, min(6, (os.cpu_count() or 1) + 2))


Job = tuple[int, Json]


class Jobs(Protocol):
    """Documents to play, each with its number."""

    async def take(self) -> Job | None:
        """Return the next job, None if no more is to be begun."""
        ...

    def put_back(self, job: Job) -> None:
        """Return a job that was taken and not played."""
        ...


class WaitingJobs:
    """Jobs from an iterator, none after `end` (`time.monotonic`)."""

    def __init__(self, documents: Iterable[Json], end: float) -> None:
        self._documents = enumerate(documents)
        self._returned: list[Job] = []
        self._end = end

    async def take(self) -> Job | None:
        """Return the next job, None after the last one or the end of the time."""
        if time.monotonic() >= self._end:
            return None
        return self._returned.pop() if self._returned else next(self._documents, None)

    def put_back(self, job: Job) -> None:
        """Return a job that was taken and not played."""
        self._returned.append(job)


class Lanes:
    """Benches that play documents at the same time. Only the first one must work.

    If a server cannot run several times (because of a fixed port, or a lock), the benches that
    could not start it are removed.
    """

    def __init__(self, config: Config, benches: Sequence[Bench]) -> None:
        self._config = config
        self._benches = list(benches)
        self._proven = False

    @property
    def number(self) -> int:
        """Return the number of documents played at the same time."""
        return len(self._benches)

    async def play_all(
        self,
        documents: Sequence[Json],
        end: float,
        spoils: Callable[[Played], bool] | None = None,
        *,
        fresh: bool = False,
        bound: float | None = None,
    ) -> list[Played | None]:
        """Play documents on free lanes; None for those not begun by `end` (`time.monotonic`).

        The other arguments and errors are those of `play_jobs`.
        """
        results: list[Played | None] = [None] * len(documents)
        jobs = WaitingJobs(documents, end)
        await self.play_jobs(jobs, results.__setitem__, spoils, fresh=fresh, bound=bound)
        return results

    async def play_jobs(
        self,
        jobs: Jobs,
        on_played: Callable[[int, Played], object],
        spoils: Callable[[Played], bool] | None = None,
        *,
        fresh: bool = False,
        bound: float | None = None,
    ) -> None:
        """Play jobs on free lanes until none is left.

        A process on which something went wrong (`spoils`) is not used again; with `fresh` none is
        used twice. `bound` limits each step, in seconds. Raises `SetupFailed` if the server cannot
        be used at all.
        """
        first = self._benches[0]
        gone: list[SetupFailed] = []
        # The other lanes begin when the first one has shown that the server works.
        proven = anyio.Event()

        async def work(bench: Bench) -> None:
            while not gone and (job := await jobs.take()) is not None:
                try:
                    if fresh:
                        await bench.servers.retire_all()
                    played = await play(bench, self._config, job[1], bound=bound)
                except SetupFailed as failed:
                    jobs.put_back(job)
                    if bench is first:
                        gone.append(failed)
                    else:
                        self._benches.remove(bench)
                    return
                if bench is first:
                    self._proven = True
                    proven.set()
                on_played(job[0], played)
                if spoils is not None and spoils(played):
                    await bench.servers.retire_all()

        async def work_after_first(bench: Bench) -> None:
            await proven.wait()
            await work(bench)

        if self._proven:
            proven.set()
        async with anyio.create_task_group() as tasks:
            for bench in self._benches[1:]:
                tasks.start_soon(work_after_first, bench)
            await work(first)
            proven.set()
        # A lane may have returned its job after the first one had finished.
        await work(first)
        if gone:
            raise gone[0]


@contextmanager
def further_benches(
    portal: BlockingPortal,
    config: Config,
    first: Bench,
    worker: str,
    lane_count: int = MAX_LANES,
) -> Generator[Lanes]:
    """Open further lanes for the length of the block; yield all lanes, with `first`."""
    with ExitStack() as stack:
        more = [
            stack.enter_context(
                portal.wrap_async_context_manager(
                    open_bench(
                        first.profile,
                        config.book,
                        base=config.base,
                        worker=f"{worker}-{number}",
                        scale=config.scale,
                        progress=config.progress,
                    )
                )
            )
            for number in range(2, lane_count + 1)
        ]
        yield Lanes(config, [first, *more])
