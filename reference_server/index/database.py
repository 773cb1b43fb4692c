"""Database file of the index: location, opening, replacement.

The pointer `index/current-<version>` names the database in use; a new one is built under a new name
and named there when it is complete. So no server sees a half-built index, and no name is used
twice: SQLite removes files by name when the last user of a database closes it, which would remove
those of a successor of the same name.
"""

import contextlib
import logging
import os
import re
import sqlite3
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from reference_server.safe_files import make_private, open_for_reading, open_regular

_log = logging.getLogger(__name__)

VERSION = 1
"""Version of the schema and the rows. Servers of another version use another index."""
BUSY_TIME = 5.0
"""Seconds to wait for another server that writes, which takes milliseconds."""
_POINTER = f"current-{VERSION}"
_NAME = re.compile(rb"threads-[0-9a-f]{16}\.sqlite")
_ABANDONED = 3600.0
"""Seconds since the last change after which a database that no pointer names may be removed."""
_BESIDE = ("", "-wal", "-shm", "-journal")

_SCHEMA = """
CREATE TABLE threads (
    key INTEGER PRIMARY KEY,
    folder BLOB NOT NULL,
    file BLOB NOT NULL,
    id TEXT NOT NULL,
    shelf INTEGER NOT NULL,
    unreadable INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    read_to INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    moved INTEGER NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    provider TEXT NOT NULL,
    source TEXT NOT NULL,
    cwd TEXT NOT NULL,
    name BLOB,
    preview BLOB NOT NULL,
    long INTEGER NOT NULL
);
CREATE UNIQUE INDEX by_place ON threads (folder, file);
CREATE INDEX by_id ON threads (id);
CREATE INDEX by_move ON threads (shelf, moved);
CREATE INDEX by_created ON threads (shelf, created, id);
CREATE INDEX by_updated ON threads (shelf, updated, id);
CREATE INDEX by_provider_created ON threads (shelf, provider, created, id);
CREATE INDEX by_provider_updated ON threads (shelf, provider, updated, id);
CREATE INDEX by_source_created ON threads (shelf, source, created, id);
CREATE INDEX by_source_updated ON threads (shelf, source, updated, id);
CREATE INDEX by_cwd_created ON threads (shelf, cwd, created, id);
CREATE INDEX by_cwd_updated ON threads (shelf, cwd, updated, id);
CREATE INDEX by_length ON threads (key) WHERE long;
"""
_TITLES = """
CREATE VIRTUAL TABLE titles USING fts5 (title, tokenize = 'trigram case_sensitive 1');
"""
"""Full-text table of titles by trigrams, to search for parts of them. Not every SQLite has it."""
# Not synchronous: a crash of the machine loses nothing, since a process first checks every file,
# and rebuilds a damaged index.
_SETTINGS = """
PRAGMA trusted_schema = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -4000;
"""


class NoIndex(Exception):
    """The index cannot be used: it is missing, damaged, or of another version."""


class Database:
    """An open database, for one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, pointer: "_PointerState | None") -> None:
        self.connection = connection
        self._pointer = pointer
        row = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'titles'").fetchone()
        self.has_titles = row is not None
        """True if titles can be searched by their parts."""

    @classmethod
    def open(cls, folder: Path) -> "Database":
        """Open the database in use.

        Raises NoIndex if no database is valid, sqlite3.Error if it cannot be read.
        """
        pointer = folder / _POINTER
        state = _pointer_state(pointer)
        name = _read_pointer(pointer)
        if name is None:
            raise NoIndex("there is none")
        path = folder / name
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.stat(path, follow_symlinks=False).st_mode):
                return cls(_check_database(_connect(path)), state)
        raise NoIndex(f"{path} is missing")

    @classmethod
    def in_memory(cls) -> "Database":
        """Return an empty database in memory."""
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _make_tables(connection)
        return cls(connection, None)

    def is_current(self, folder: Path) -> bool:
        """Return whether the pointer is as it was when this database was opened."""
        return self._pointer is None or _pointer_state(folder / _POINTER) == self._pointer

    @contextmanager
    def write_transaction(self) -> Generator[None]:
        """Run the block as one transaction, during which no other server writes."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # After an error of its own, SQLite may have rolled back already.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    @contextmanager
    def read_transaction(self) -> Generator[None]:
        """Read in the block from one snapshot of the rows, whatever others write."""
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the database; its file stays."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()


class Successor:
    """A new, empty database on disk, unknown to other servers until it is published."""

    def __init__(self, folder: Path) -> None:
        make_private(folder)
        self._folder = folder
        self._name = f"threads-{os.urandom(8).hex()}.sqlite"
        path = folder / self._name
        # Created here with private permissions, which SQLite copies to the files beside it.
        os.close(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        connection = _connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        _make_tables(connection)
        self.database = Database(connection, None)

    def publish(self) -> Database:
        """Make this the database in use, remove the old one, and return it. Raises OSError."""
        pointer = self._folder / _POINTER
        if pointer.is_dir() and not pointer.is_symlink():
            pointer.rename(self._folder / f"{_POINTER}.moved-{time.time_ns()}")
        fresh = self._folder / f"{_POINTER}.{self._name}"
        descriptor = open_regular(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(descriptor, self._name.encode() + b"\n")
        finally:
            os.close(descriptor)
        old = _read_pointer(pointer)
        fresh.replace(pointer)
        self._remove_others(old)
        return Database(self.database.connection, _pointer_state(pointer))

    def give_up(self) -> None:
        """Close and remove the new database."""
        self.database.close()
        _remove(self._folder, self._name)

    def _remove_others(self, old: str | None) -> None:
        """Remove the old database, which stays usable while open, and those of killed servers."""
        if old is not None:
            _remove(self._folder, old)
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                is_database = _NAME.fullmatch(os.fsencode(entry.name))
                if is_database and entry.name != self._name:
                    age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                    if age > _ABANDONED:
                        _remove(self._folder, entry.name)


_PointerState = tuple[int, int, int, int]


def _read_pointer(pointer: Path) -> str | None:
    """Return the name of the database in use; None without a valid pointer."""
    try:
        with open_for_reading(pointer) as file:
            name = file.read(100).strip()
    except OSError:
        return None
    return name.decode() if _NAME.fullmatch(name) else None


def _pointer_state(path: Path) -> _PointerState | None:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIME, isolation_level=None, check_same_thread=False
    )
    try:
        connection.executescript(_SETTINGS)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute(_TITLES)


def _check_database(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Return the connection if the database is undamaged and of this version; else close it.

    Raises NoIndex, sqlite3.Error.
    """
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            raise NoIndex(f"it is of version {version}")
        (words,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if words != "ok":
            raise NoIndex(f"it is damaged: {words}")
        connection.execute("SELECT * FROM threads LIMIT 0")
    except BaseException:
        connection.close()
        raise
    return connection


def _remove(folder: Path, name: str) -> None:
    for suffix in _BESIDE:
        with contextlib.suppress(OSError):
            (folder / f"{name}{suffix}").unlink()
