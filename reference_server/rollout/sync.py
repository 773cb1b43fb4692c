"""Bringing rollouts to the disk without holding up the conversation.

Here lives the one task that calls fsync, in a worker thread, after the end of a turn was told:
fsync takes milliseconds, and a turn has fewer. Requests that come while one is under way share
the next.
"""

import logging

import anyio
from anyio import to_thread

from reference_server.rollout.writer import Recorder

_log = logging.getLogger(__name__)


class Syncer:
    """Syncs the recorders it is given, each at least once after every request."""

    def __init__(self) -> None:
        self._waiting: set[Recorder] = set()
        self._wake = anyio.Event()

    def request(self, recorder: Recorder) -> None:
        """Ask for a sync; never waits."""
        if recorder.path is not None:
            self._waiting.add(recorder)
            self._wake.set()

    async def run(self) -> None:
        """Serve requests until cancelled; closing a recorder syncs it too."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            batch, self._waiting = self._waiting, set()
            await to_thread.run_sync(_sync_all, batch)


def _sync_all(recorders: set[Recorder]) -> None:
    for recorder in recorders:
        try:
            recorder.sync()
        except OSError as error:
            _log.error("%s: not synced to disk: %s", recorder.path, error)
