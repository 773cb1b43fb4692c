"""Calls of fsync on rollouts for which no turn waits.

One thread calls fsync, after turn/completed is sent: fsync takes milliseconds, longer than the rest
of a short turn. Requests during a call share the next one. The thread is kept, since starting a
worker for each request would cost a tenth of a turn.
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
    """Queue of recorders to sync; each request is followed by a sync that begins after it."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Recorder | None] = SimpleQueue()
        self._has_requests = anyio.Event()

    def request(self, recorder: Recorder) -> None:
        """Request a sync of a recorder's file, without waiting for it."""
        if recorder.path is not None:
            self._waiting.put(recorder)
            self._has_requests.set()

    async def run(self) -> None:
        """Serve requests until cancelled, then finish those already made."""
        await self._has_requests.wait()
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
