"""Bringing rollouts to the disk without holding up the conversation.

Here lives the one thread that calls fsync, after the end of a turn was told: fsync takes
milliseconds, and a turn has fewer. Requests that come while one is under way share the next. The
thread is kept, since handing each request to a new job of the event loop costs a tenth of a turn.
"""

import contextlib
import logging
from collections.abc import Iterable
from queue import Empty, SimpleQueue

import anyio
from anyio import to_thread

from reference_server.rollout.writer import Recorder

_log = logging.getLogger(__name__)


class Syncer:
    """Syncs the recorders it is given, each at least once after every request."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Recorder | None] = SimpleQueue()
        self._asked = anyio.Event()

    def request(self, recorder: Recorder) -> None:
        """Ask for a sync; never waits."""
        if recorder.path is not None:
            self._waiting.put(recorder)
            self._asked.set()

    async def run(self) -> None:
        """Serve requests until cancelled; what was asked for by then is still done."""
        await self._asked.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, self._work)
            try:
                await anyio.sleep_forever()
            finally:
                self._waiting.put(None)

    def _work(self) -> None:
        ended = False
        while not ended:
            batch = {self._waiting.get()}
            with contextlib.suppress(Empty):
                while True:
                    batch.add(self._waiting.get_nowait())
            ended = None in batch
            _sync_all(one for one in batch if one is not None)


def _sync_all(recorders: Iterable[Recorder]) -> None:
    for recorder in recorders:
        try:
            recorder.sync()
        except OSError as error:
            _log.error("%s: not synced to disk: %s", recorder.path, error)
