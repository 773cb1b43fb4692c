"""Reader of rollout files.

Invalid lines (one cut short by a crash, a record type of another version) are skipped.

The file of a loaded thread may grow while it is read. So it is read in steps: most of it in a
worker thread, then the lines that were added meanwhile.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Event
from typing import BinaryIO

from reference_server.rollout.fold import Fold, StoredThread, UnreadableRollout
from reference_server.rollout.records import (
    NewerFormat,
    Record,
    ThreadRecord,
    TurnStartedRecord,
    parse_record,
)
from reference_server.rollout.store import thread_id_of
from reference_server.safe_files import LINE_LIMIT, lines_of, open_for_reading

_log = logging.getLogger(__name__)

__all__ = ["GivenUp", "RolloutReader", "StoredThread", "UnreadableRollout", "read_rollout"]
MAX_ROLLOUT_BYTES = 512 * 2**20
"""Maximum bytes of a rollout: a thread of a hundred thousand turns has less."""


class GivenUp(Exception):
    """The caller no longer waits for the thread."""


class _Beginning:
    """Start of a rollout's records: holds records until a ThreadRecord, made if it is lost."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._early: list[Record] = []
        self._has_begun = False

    def feed(self, record: Record) -> Iterable[Record]:
        """Return the records to take now, perhaps none, the ThreadRecord first."""
        if self._has_begun:
            return (record,)
        first = record if isinstance(record, ThreadRecord) else lost_beginning(self._path, record)
        if first is not record:
            self._early.append(record)
        if first is None:
            return ()
        self._has_begun = True
        return first, *self._early


def lost_beginning(path: Path | str, record: Record) -> ThreadRecord | None:
    """Return a first record for a file that has lost it, made from its first turn's start.

    The file's name has the thread's id, the turn the settings. None for any other record.
    """
    thread_id = thread_id_of(path) if isinstance(path, Path) else None
    if thread_id is None or not isinstance(record, TurnStartedRecord):
        return None
    return ThreadRecord(at=record.at, id=thread_id, settings=record.settings)


class RolloutReader:
    """Reader of one rollout; each `read` continues where the last one ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fold = Fold()
        self._beginning = _Beginning(path)
        self._offset = 0
        self._lines = 0
        self._tail = b""
        self._before = b""

    @property
    def unread(self) -> int:
        """Return the bytes of the file that were not read yet. Raises OSError."""
        return self._path.stat().st_size - self._offset

    def read(self, given_up: Event | None = None) -> None:
        """Read to the end of the file. Raises OSError, UnreadableRollout.

        A long file takes seconds. A caller that no longer waits sets `given_up`; then it raises
        GivenUp.
        """
        self._tail = b""
        with open_for_reading(self._path) as file:
            _check_size(file, self._path)
            file.seek(self._offset)
            for line in lines_of(file):
                if given_up is not None and given_up.is_set():
                    raise GivenUp
                if not line.endswith(b"\n") and len(line) < LINE_LIMIT:
                    # It may be incomplete; the next `read` reads it again.
                    self._tail = line
                    return
                self._offset += len(line)
                self._lines += 1
                self._take(line)

    def _take(self, line: bytes) -> None:
        before, self._before = self._before, line
        # Records differ at least in their times, so an equal line is a duplicate.
        if line == before or not line.strip():
            return
        if (record := record_in(self._path, self._lines, line)) is not None:
            for ready in self._beginning.feed(record):
                self._fold.take(ready)

    def finish(self) -> StoredThread:
        """Return the thread; read nothing afterwards. Raises UnreadableRollout if it has none."""
        self._lines += 1
        self._take(self._tail)
        try:
            return self._fold.finish()
        except UnreadableRollout as error:
            raise UnreadableRollout(f"{self._path}: {error}") from None


def whole_lines_of(path: Path, given_up: Event) -> Iterator[bytes]:
    """Yield the lines of a file that are not blank, each with a line end.

    The last one may be incomplete. Raises OSError, UnreadableRollout, and GivenUp once `given_up`
    is set.
    """
    with open_for_reading(path) as file:
        _check_size(file, path)
        for line in lines_of(file):
            if given_up.is_set():
                raise GivenUp
            if line.strip():
                yield line if line.endswith(b"\n") else line + b"\n"


def record_in(path: Path | str, number: int, line: bytes) -> Record | None:
    """Parse a line; log an invalid one and return None. Raises UnreadableRollout if newer."""
    try:
        return parse_record(line)
    except NewerFormat as error:
        raise UnreadableRollout(f"{path}: {error}") from None
    except ValueError:
        _log.warning("%s:%d: skipped a line that is no record", path, number)
        return None


def _check_size(file: BinaryIO, path: Path) -> None:
    """Raise UnreadableRollout for a file that would take minutes and most of the memory."""
    size = os.fstat(file.fileno()).st_size
    if size > MAX_ROLLOUT_BYTES:
        raise UnreadableRollout(f"{path}: is larger than {MAX_ROLLOUT_BYTES // 2**20} MiB")


def read_rollout(path: Path, given_up: Event | None = None) -> StoredThread:
    """Read a whole rollout file. Raises OSError, UnreadableRollout, GivenUp."""
    reader = RolloutReader(path)
    reader.read(given_up)
    return reader.finish()
