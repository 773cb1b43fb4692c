"""Index of one home, as one server uses it.

Before a page is returned, this server's changes are read, the folders are checked, and every file
of the page is compared with its row. If the disk cannot be used the index is kept in memory.
All of this blocks; `lists` calls it in a worker thread.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import TypeVar

from reference_server.config.home import Home
from reference_server.index.cursor import Position
from reference_server.index.database import Database, NoIndex, Successor
from reference_server.index.pages import Page, page_of
from reference_server.index.query import Query
from reference_server.index.rows import Row
from reference_server.index.summary import Stamp, Summary
from reference_server.index.upkeep import Upkeep
from reference_server.rollout.reader import GivenUp

T = TypeVar("T")
_log = logging.getLogger(__name__)

EVERY_FILE_TIME = 30.0
"""Seconds after which all files are compared with their rows again."""
EVERY_FILE_SHARE = 50
"""Multiple of the duration of the last such check that must pass, too."""
_ROUNDS = 4
"""Maximum queries for a page whose files keep changing."""
_OUTSIDE_ERRORS = (
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_FULL",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_PERM",
    "SQLITE_PROTOCOL",
    "SQLITE_IOERR",
    "SQLITE_NOMEM",
)
"""Errors of the disk, or of another process that keeps the database locked."""


@dataclass(frozen=True, slots=True)
class ListedThread:
    """A thread of a list, and the path of its rollout."""

    path: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list; `next` is where the next page begins, None after the last one."""

    threads: list[ListedThread]
    next: Position | None


class ThreadIndex:
    """Index of a home. Several threads may use it; a lock admits one at a time."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._folder = home.thread_index
        self._lock = Lock()
        self._given_up = Event()
        self._database: Database | None = None
        self._upkeep = Upkeep(home, self._given_up)
        self._changed: set[tuple[str, Path]] = set()
        self._in_memory = False
        self._checked = False
        self._next_check = 0.0

    def note(self, thread: str, path: Path) -> None:
        """Note that a rollout was written, made or removed; it is read before the next page."""
        self._changed.add((thread, path))

    def page(self, query: Query, after: Position | None, now: float) -> Listing:
        """Return a page, the first for None; `now` is in seconds since 1970.

        Raises GivenUp after `give_up`, OSError, sqlite3.Error.
        """
        with self._lock:
            return self._with_recovery(partial(self._page, query, after, now))

    def write_down(self) -> None:
        """Write the noted changes into the rows, for other servers too, if there is an index.

        Never raises: a missed change is found when a list checks every file.
        """
        with self._lock:
            self._write_down()

    def _write_down(self) -> None:
        try:
            if self._database is None:
                # Before it serves a page, every file must be checked.
                self._database = Database.open(self._folder)
                self._checked = False
            if self._in_memory or self._database.is_current(self._folder):
                self._read_changed(self._database)
            else:
                self._close_database()
        except (NoIndex, GivenUp):
            self._changed.clear()
        except (OSError, sqlite3.Error) as error:
            _log.warning("the index of threads was not brought up to date: %s", error)
            self._changed.clear()
            self._close_database()

    def check_if_due(self) -> None:
        """Compare all files with their rows if due. Raises GivenUp, OSError, sqlite3.Error."""
        with self._lock:
            if self.is_check_due:
                self._with_recovery(self._check_every_file)

    @property
    def is_check_due(self) -> bool:
        """Return whether the last comparison of all files was long ago."""
        return self._checked and time.monotonic() > self._next_check

    def give_up(self) -> None:
        """Make running operations raise GivenUp soon, since their callers no longer wait."""
        self._given_up.set()

    def close(self) -> None:
        """Write the noted changes, and close the index. Never raises."""
        with self._lock:
            self._given_up.clear()
            if self._changed:
                self._write_down()
            self._close_database()

    def _with_recovery(self, task: Callable[[Database], T]) -> T:
        """Return the task's result with the database, or after a failure with a rebuilt one.

        A second failure, or a first one that is not damage, rebuilds it in memory. Raises GivenUp,
        OSError, sqlite3.Error.
        """
        try:
            return task(self._open_database())
        except sqlite3.Error as error:
            self._close_database()
            self._in_memory = self._in_memory or not _is_damage(error)
            _log.warning("the index of threads cannot be used, it is made anew: %s", error)
        try:
            return task(self._build())
        except sqlite3.Error as error:
            self._close_database()
            self._in_memory = True
            _log.warning("the index of threads is kept in memory: %s", error)
        return task(self._build())

    def _open_database(self) -> Database:
        """Return the database, checked or newly built. Raises GivenUp, OSError, sqlite3.Error."""
        database = self._database
        if database is not None and not database.is_current(self._folder):
            self._close_database()
            database = None
        if database is None:
            if self._in_memory:
                return self._build()
            try:
                database = self._database = Database.open(self._folder)
            except NoIndex as reason:
                _log.info("the index of threads is made anew: %s", reason)
                return self._build()
        if not self._checked:
            self._check_every_file(database)
        return database

    def _build(self) -> Database:
        """Build a new index and use it. Raises GivenUp, OSError, sqlite3.Error."""
        started_at = time.monotonic()
        successor = self._successor()
        database = Database.in_memory() if successor is None else successor.database
        try:
            self._upkeep.build(database)
            if successor is not None:
                database = self._publish(successor)
        except BaseException:
            database.close()
            if successor is not None:
                successor.give_up()
            raise
        self._database = database
        self._check_again(started_at)
        return database

    def _successor(self) -> Successor | None:
        """Return a new index on disk; None if the index is kept in memory."""
        if not self._in_memory:
            try:
                return Successor(self._folder)
            except OSError as error:
                _log.warning("the index of threads is kept in memory: %s", error)
                self._in_memory = True
        return None

    def _publish(self, successor: Successor) -> Database:
        try:
            return successor.publish()
        except OSError as error:
            _log.warning("other servers do not see the index of threads: %s", error)
            self._in_memory = True
            return successor.database

    def _close_database(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        self._checked = False
        self._upkeep = Upkeep(self._home, self._given_up)

    def _check_every_file(self, database: Database) -> None:
        started_at = time.monotonic()
        self._upkeep.look_at_every_file(database)
        self._check_again(started_at)

    def _check_again(self, started_at: float) -> None:
        self._checked = True
        now = time.monotonic()
        self._next_check = now + max(EVERY_FILE_TIME, EVERY_FILE_SHARE * (now - started_at))

    def _read_changed(self, database: Database) -> None:
        """Update the rows of the noted changes. Raises OSError, sqlite3.Error."""
        changed, self._changed = self._changed, set()
        try:
            places = [self._upkeep.place_of(path, thread) for thread, path in changed]
            if known_places := [place for place in places if place is not None]:
                self._upkeep.reread(database, known_places)
        except BaseException:
            self._changed |= changed
            raise

    def _page(
        self, query: Query, after: Position | None, now: float, database: Database
    ) -> Listing:
        self._read_changed(database)
        self._upkeep.look(database)
        for rounds_left in reversed(range(_ROUNDS)):
            with database.read_transaction():
                page = page_of(database, query, after, now)
            stale = [row.place for row in page.rows if not self._is_fresh(row)]
            # In the last round a file that keeps changing is shown as it was a moment ago.
            if not stale or not rounds_left:
                return self._listing(page)
            self._upkeep.reread(database, stale)
            if not all(os.path.lexists(place.path(self._home.root)) for place in stale):
                self._upkeep.look(database, everywhere=True)
        raise AssertionError("the last round returns")

    def _listing(self, page: Page) -> Listing:
        root = self._home.root
        threads = [
            ListedThread(str(row.place.path(root)), row.summary) for row in page.rows if row.summary
        ]
        return Listing(threads, page.next)

    def _is_fresh(self, row: Row) -> bool:
        """Return whether the file of a row is unchanged."""
        try:
            status = os.stat(row.place.path(self._home.root), follow_symlinks=False)
        except OSError:
            return False
        return Stamp.of(status) == row.stamp


def _is_damage(error: sqlite3.Error) -> bool:
    """Return whether the database itself is damaged, so that a new one helps."""
    name = getattr(error, "sqlite_errorname", "")
    return not name.startswith(_OUTSIDE_ERRORS)
