"""Lists of threads for the event loop, without blocking it, and changes of threads for the index.

SQLite and the rest of the index are imported on first use.
"""

import logging
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.abc import TaskGroup

from reference_server.config.home import Home
from reference_server.rollout.reader import GivenUp

if TYPE_CHECKING:
    from reference_server.index.cursor import Position
    from reference_server.index.index import ListedThread, Listing, ThreadIndex
    from reference_server.index.query import Query

_log = logging.getLogger(__name__)

WRITE_TIME = 0.1
"""Seconds after which a change is written to the index, with those that followed it."""
WRITE_SHARE = 20
"""Multiple of the duration of the last write that must pass, too, on a busy server."""
MAX_WRITE_SECONDS = 1.0


class ThreadLists:
    """Access of the event loop to the index of a home; it is the watcher of the loaded threads."""

    def __init__(self, tasks: TaskGroup, home: Home, clock: Callable[[], float]) -> None:
        self._tasks = tasks
        self._home = home
        self._clock = clock
        self._changed: set[tuple[str, Path]] = set()
        self._writing = False
        self._write_time = WRITE_TIME
        self._closed = anyio.Event()
        # The index serves one task at a time; the others wait here, not in worker threads.
        self._limiter = CapacityLimiter(1)

    @cached_property
    def _index(self) -> "ThreadIndex":
        from reference_server.index.index import ThreadIndex

        return ThreadIndex(self._home)

    def on_change(self, thread_id: str, path: Path) -> None:
        """Note that a thread's rollout has changed."""
        self._changed.add((thread_id, path))
        self._write_soon()

    def on_move(self, thread_id: str, old: Path, new: Path) -> None:
        """Note that a thread's rollout was moved."""
        self._changed.add((thread_id, old))
        self._changed.add((thread_id, new))
        self._write_soon()

    async def page(
        self, query: "Query", cursor: str | None
    ) -> "tuple[list[ListedThread], str | None]":
        """Return a page and the cursor of the next, None after the last one.

        The first call may read all rollouts of the home. Raises BadCursor, GivenUp, OSError,
        sqlite3.Error.
        """
        from reference_server.index.cursor import decode_cursor, encode_cursor

        home = str(self._home.root)
        after = None if cursor is None else decode_cursor(cursor, query, home)
        page = await to_thread.run_sync(
            self._page, query, after, self._clock(), abandon_on_cancel=True, limiter=self._limiter
        )
        if self._index.is_check_due:
            self._tasks.start_soon(self._check)
        return page.threads, None if page.next is None else encode_cursor(page.next, query, home)

    def _page(self, query: "Query", after: "Position | None", now: float) -> "Listing":
        self._hand_over()
        return self._index.page(query, after, now)

    def _hand_over(self) -> None:
        while True:
            try:
                changed = self._changed.pop()
            except KeyError:
                return
            self._index.note(*changed)

    def _write_soon(self) -> None:
        if not self._writing:
            self._writing = True
            self._tasks.start_soon(self._write)

    async def _write(self) -> None:
        with anyio.move_on_after(self._write_time):
            await self._closed.wait()
            # The remaining changes are written by `close`.
            return
        self._writing = False
        if "_index" in vars(self) or self._home.thread_index.is_dir():
            await to_thread.run_sync(self._write_down, limiter=self._limiter)
        else:
            # Without an index there is nothing to update; building one would read every file.
            self._changed.clear()

    def _write_down(self) -> None:
        started_at = time.monotonic()
        self._hand_over()
        self._index.write_down()
        duration = time.monotonic() - started_at
        self._write_time = min(max(WRITE_TIME, WRITE_SHARE * duration), MAX_WRITE_SECONDS)

    async def _check(self) -> None:
        import sqlite3

        try:
            await to_thread.run_sync(
                self._index.check_if_due, abandon_on_cancel=True, limiter=self._limiter
            )
        except (OSError, GivenUp, sqlite3.Error) as error:
            # In a task of the server's: an error would end the server.
            _log.warning("threads were not compared with their files: %s", error)

    async def close(self) -> None:
        """End running operations and write the noted changes. Never raises."""
        self._closed.set()
        if "_index" in vars(self):
            self._index.give_up()
        await to_thread.run_sync(self._close, limiter=self._limiter)

    def _close(self) -> None:
        if "_index" in vars(self) or (self._changed and self._home.thread_index.is_dir()):
            self._hand_over()
            self._index.close()
