"""Upkeep of the index, so that its rows match the files, whatever changes them.

A folder's time shows that files were made or removed, a file's stamp that it was written. A check
of all files, such as the first one of a process, compares the stamp of each with its row.
"""

import contextlib
import errno
import logging
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from reference_server.config.home import Home
from reference_server.ids import NUMBER
from reference_server.index.database import Database
from reference_server.index.rows import (
    Place,
    Row,
    next_move,
    remove_row,
    row_at,
    rows_in,
    unreadable_rows,
    write_row,
)
from reference_server.index.summary import Stamp, read_summary
from reference_server.rollout.fold import UnreadableRollout
from reference_server.rollout.reader import GivenUp

_log = logging.getLogger(__name__)

FEW_FOLDERS = 256
"""Maximum folders that are all checked for every list; of more, only those that servers use."""
OTHERS_TIME = 0.5
"""Seconds after which the other folders are checked too."""
LONG_FOLDER = 1000
"""Files from which a folder is not scanned for every list. What this server writes is known without
a scan."""
SCAN_SHARE = 20
"""Multiple of the duration of a scan that must pass before the next one of a long folder."""
UNREADABLE_PER_LIST = 100
"""Maximum unreadable files checked for every list; the rest is checked with all files."""
_DEPTH = 3
"""Depth of folders (year, month, day), a limit because links to folders may form a cycle."""
_NEWEST = 3
_FILE = re.compile(f"rollout-.*-(thr_{NUMBER})\\.jsonl".encode())
_COARSE, _FINE = 2_000_000_000, 50_000_000
"""Nanoseconds within which a folder may change again without a new time, since clocks of file
systems are coarse; _COARSE for those that count seconds or more."""
_SERVER_ERRORS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""Errors that are not the file's fault."""


@dataclass(slots=True)
class _Folder:
    """Content of a folder; `changed_ns` is None if a later change may have the same time.

    The next scan is due at `next_scan`, in seconds of the monotonic clock.
    """

    depth: int
    changed_ns: int | None
    next_scan: float = 0.0
    folders: list[bytes] = field(default_factory=list[bytes])
    files: dict[bytes, str] = field(default_factory=dict[bytes, str])


class Upkeep:
    """Upkeep of one database's rows, for one thread at a time."""

    def __init__(self, home: Home, given_up: Event) -> None:
        self._root = home.root
        self._start = os.fsencode(home.root)
        self._roots = [os.fsencode(path.name) for path in (home.sessions, home.archived_sessions)]
        self._given_up = given_up
        self._folders: dict[bytes, _Folder] = {}
        self._written: list[bytes] | None = None
        self._looked = -OTHERS_TIME

    def place_of(self, path: Path, thread: str) -> Place | None:
        """Return the place of a rollout of this home; None for a file elsewhere."""
        folder, file = os.path.split(os.fsencode(path))
        if not folder.startswith(self._start + b"/"):
            return None
        return Place(folder[len(self._start) + 1 :], file, thread)

    def build(self, database: Database) -> None:
        """Fill an empty database. Raises GivenUp, OSError, sqlite3.Error."""
        with database.write_transaction():
            self._folders = {}
            for path in self._find_differing(database, self._roots, every_file=True, at_once=True):
                self._mend(database, path, every_file=True, built=True)

    def reread(self, database: Database, places: Iterable[Place]) -> None:
        """Update the rows of these files. Raises OSError, sqlite3.Error."""
        with database.write_transaction():
            for place in places:
                self._reread(database, place)

    def look(self, database: Database, *, everywhere: bool = False) -> None:
        """Update the rows for files that were made or removed, and of unreadable ones.

        Raises GivenUp, OSError, sqlite3.Error.
        """
        due = self._due(everywhere=everywhere)
        self._mend_all(database, due, every_file=False, at_once=everywhere)
        # An unreadable file may be a new one, whose first line another server has written since.
        changed = [
            place
            for place, stamp in unreadable_rows(database.connection, UNREADABLE_PER_LIST)
            if not self._is_unchanged(place.folder, place.file, True, stamp)
        ]
        if changed:
            self.reread(database, changed)

    def look_at_every_file(self, database: Database) -> None:
        """Compare all files with their rows and update these.

        Raises GivenUp, OSError, sqlite3.Error.
        """
        folders = database.connection.execute("SELECT DISTINCT folder FROM threads")
        # With the folders of rows, since a walk does not find removed folders.
        due = dict.fromkeys([*self._roots, *(folder for (folder,) in folders)])
        self._mend_all(database, list(due), every_file=True, at_once=True)

    def _mend_all(
        self, database: Database, due: Iterable[bytes], *, every_file: bool, at_once: bool
    ) -> None:
        differing = self._find_differing(database, due, every_file=every_file, at_once=at_once)
        if differing:
            with database.write_transaction():
                for path in differing:
                    self._mend(database, path, every_file=every_file)

    def _due(self, *, everywhere: bool) -> list[bytes]:
        """Return the folders to check now."""
        now = time.monotonic()
        few = len(self._folders) <= FEW_FOLDERS
        if everywhere or few or now - self._looked > OTHERS_TIME:
            self._looked = now
            return list(dict.fromkeys([*self._roots, *self._folders]))
        if self._written is None:
            days = sorted(path for path in self._folders if path.startswith(self._roots[0]))
            higher = [path for path, folder in self._folders.items() if folder.depth < _DEPTH]
            self._written = list(dict.fromkeys([*self._roots, *higher, *days[-_NEWEST:]]))
        return self._written

    def _find_differing(
        self, database: Database, due: Iterable[bytes], *, every_file: bool, at_once: bool
    ) -> list[bytes]:
        """Return the folders among `due` and new ones below them whose rows differ from the files.

        Unless `at_once`, a long folder is left out soon after its last scan.

        Raises GivenUp, OSError, sqlite3.Error.
        """
        differing: list[bytes] = []
        waiting = [(path, path.count(b"/")) for path in due]
        visited: set[bytes] = set()
        while waiting:
            path, depth = waiting.pop()
            if path in visited:
                continue
            visited.add(path)
            self._check_given_up()
            before = self._folders.get(path)
            status = self._status(path)
            if status is None:
                self._forget(path)
                if before is not None or any(rows_in(database.connection, path)):
                    differing.append(path)
                continue
            unchanged = before is not None and before.changed_ns == status.st_mtime_ns
            if unchanged and not every_file:
                continue
            if before is not None and not at_once and time.monotonic() < before.next_scan:
                continue
            folder = self._scan_folder(path, depth, status)
            if self._is_shown(database, path, folder, every_file=every_file):
                self._remember(path, folder)
            else:
                differing.append(path)
            if depth < _DEPTH:
                new = (path + b"/" + name for name in folder.folders)
                waiting.extend(
                    (one, depth + 1) for one in new if every_file or one not in self._folders
                )
        return differing

    def _status(self, path: bytes) -> os.stat_result | None:
        try:
            return os.stat(self._start + b"/" + path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _scan_folder(self, path: bytes, depth: int, status: os.stat_result) -> _Folder:
        """Return the content of a folder; `status` was read before. Raises OSError."""
        changed = status.st_mtime_ns
        unnoticed = _FINE if changed % 1_000_000 else _COARSE
        settled = abs(time.time_ns() - changed) > unnoticed
        started_at = time.monotonic()
        folder = _Folder(depth, changed if settled else None)
        try:
            with os.scandir(self._start + b"/" + path) as entries:
                for entry in entries:
                    if match := _FILE.fullmatch(entry.name):
                        folder.files[entry.name] = match[1].decode()
                    else:
                        # A link to itself raises.
                        with contextlib.suppress(OSError):
                            if entry.is_dir():
                                folder.folders.append(entry.name)
        except (FileNotFoundError, NotADirectoryError):
            pass
        now = time.monotonic()
        if len(folder.files) >= LONG_FOLDER:
            folder.next_scan = now + SCAN_SHARE * (now - started_at)
        return folder

    def _is_shown(
        self, database: Database, path: bytes, folder: _Folder, *, every_file: bool
    ) -> bool:
        """Return whether the rows of a folder match its files."""
        rows = {file: (bad, stamp) for file, bad, stamp, _ in rows_in(database.connection, path)}
        if rows.keys() != folder.files.keys():
            return False
        if not every_file:
            return True
        return all(self._is_unchanged(path, file, *row) for file, row in rows.items())

    def _is_unchanged(self, folder: bytes, file: bytes, unreadable: bool, stamp: Stamp) -> bool:
        try:
            status = os.stat(self._start + b"/" + folder + b"/" + file, follow_symlinks=False)
        except OSError:
            return False
        now = Stamp.of_unreadable(status) if unreadable else Stamp.of(status)
        return now == stamp

    def _mend(
        self,
        database: Database,
        path: bytes,
        *,
        every_file: bool,
        built: bool = False,
    ) -> None:
        """Update the rows of a folder, within a write transaction.

        Folder and rows are read again: another server may have written rows before it began.
        """
        status = self._status(path)
        folder = _Folder(0, None)
        if status is not None:
            folder = self._scan_folder(path, path.count(b"/"), status)
        rows = {
            file: (bad, stamp, thread)
            for file, bad, stamp, thread in rows_in(database.connection, path)
        }
        for file, (_, _, thread) in rows.items():
            if file not in folder.files:
                remove_row(database, Place(path, file, thread))
        for file, thread in folder.files.items():
            self._check_given_up()
            row = rows.get(file)
            if row is None or (every_file and not self._is_unchanged(path, file, row[0], row[1])):
                self._reread(database, Place(path, file, thread), built=built, settled=every_file)
        if status is None:
            self._forget(path)
        else:
            self._remember(path, folder)

    def _reread(
        self, database: Database, place: Place, *, built: bool = False, settled: bool = False
    ) -> None:
        """Update the row of one file. Raises OSError if the error is not the file's fault.

        `built`: the database has no row of the file. `settled`: a missing row was lost, rather than
        the file new, so its move number is the time when the file was written.
        """
        path = place.path(self._root)
        row = None if built else row_at(database.connection, place)
        earlier = row.summary if row is not None else None
        try:
            _check_name(path)
            summary = read_summary(path, earlier)
            if summary.id != place.id:
                words = f"its name says {place.id}, its thread record {summary.id}"
                raise UnreadableRollout(f"{path}: {words}")
        except FileNotFoundError:
            remove_row(database, place)
        except (OSError, UnreadableRollout) as error:
            if isinstance(error, OSError) and error.errno in _SERVER_ERRORS:
                raise
            self._put_unreadable(database, place, path, error, row)
        else:
            if row is None and settled:
                # A list that had the thread from the lost row must not list it again.
                moved = min(summary.stamp.changed_ns, time.time_ns()) // 1000
            elif (
                row is not None and earlier is not None and earlier.updated_at == summary.updated_at
            ):
                moved = row.move_number
            else:
                moved = next_move(database.connection)
            write_row(database, place, summary.stamp, summary, earlier=row, moved=moved)

    def _put_unreadable(
        self, database: Database, place: Place, path: Path, error: Exception, row: Row | None
    ) -> None:
        try:
            stamp = Stamp.of_unreadable(os.stat(path, follow_symlinks=False))
        except OSError:
            remove_row(database, place)
            return
        _log.warning("thread %s is not listed: %s", place.id, error)
        write_row(database, place, stamp, None, earlier=row, moved=0)

    def _remember(self, path: bytes, folder: _Folder) -> None:
        self._written = None if path not in self._folders else self._written
        folder.files = {}
        self._folders[path] = folder

    def _forget(self, path: bytes) -> None:
        if self._folders.pop(path, None) is not None:
            self._written = None

    def _check_given_up(self) -> None:
        if self._given_up.is_set():
            raise GivenUp


def _check_name(path: Path) -> None:
    """Raise UnreadableRollout for a path that is not UTF-8, which no message can hold."""
    try:
        str(path).encode()
    except UnicodeError:
        name = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise UnreadableRollout(f"{name}: its name is not UTF-8") from None
