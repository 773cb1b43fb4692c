"""Several servers of one target at once, since sessions mostly wait."""

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager

import anyio
from anyio.from_thread import BlockingPortal

from harness.play.bench import Bench, open_bench
from harness.play.config import Config
from harness.play.session.servers import SetupFailed
from harness.search.fuzz.sessions.play import Played, play
from harness.search.fuzz.sessions.turns import Json

# Two more than processors, within limits; each lane has a server and a model.
MAX_LANES = max(2, min(6, (os.cpu_count() or 1) + 2))


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

        A process on which something went wrong (`spoils`) is not used again; with `fresh` none is
        used twice. `bound` limits each step, in seconds. Raises `SetupFailed` if the server cannot
        be used at all.
        """
        results: list[Played | None] = [None] * len(documents)
        waiting, gone = deque(enumerate(documents)), list[SetupFailed]()

        async def work(bench: Bench) -> None:
            while waiting and not gone and time.monotonic() < end:
                index, document = waiting.popleft()
                try:
                    if fresh:
                        await bench.servers.retire_all()
                    played = await play(bench, self._config, document, bound=bound)
                except SetupFailed as failed:
                    waiting.appendleft((index, document))
                    if bench is self._benches[0]:
                        gone.append(failed)
                    else:
                        self._benches.remove(bench)
                    return
                results[index] = played
                if spoils is not None and spoils(played):
                    await bench.servers.retire_all()

        if not self._proven and documents:
            rest = waiting.copy()
            waiting = deque([rest.popleft()])
            await work(self._benches[0])
            self._proven, waiting = not gone, rest
        async with anyio.create_task_group() as tasks:
            for bench in self._benches[: len(waiting)]:
                tasks.start_soon(work, bench)
        if waiting and not gone:
            # A lane returned its document after the first one had finished.
            await work(self._benches[0])
        if gone:
            raise gone[0]
        return results


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
