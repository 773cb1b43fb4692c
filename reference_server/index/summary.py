"""Summary of a stored thread for lists, read from its rollout.

Only lines that can change the summary are parsed. `rollout.records` defines the records;
`rollout.reader` reads a whole thread.
"""

import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.protocol.wire.item import UserMessageItem
from reference_server.rollout.fold import UnreadableRollout, preview_of
from reference_server.rollout.records import (
    APP_SERVER,
    YEAR_10000,
    ItemRecord,
    NameRecord,
    NewerFormat,
    Record,
    ThreadRecord,
    TurnStartedRecord,
    parse_record,
)
from reference_server.rollout.store import thread_id_of
from reference_server.safe_files import lines_of, open_for_reading
from reference_server.settings import ThreadSettings

_HEAD = re.compile(rb'\{"type":"([a-z-]+)","at":(\d{1,12}(?:\.\d{1,12})?)[,}]')
_UNSHOWN = frozenset((b"history", b"steered", b"compacted", b"turn-completed", b"rollback"))
"""Types of records that only change the time of the last update."""
_MARK_BYTES = 256
_NO_SIGN = (1 << 63) - 1
"""Mask for inode numbers, which are unsigned, while SQLite's integers are signed."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Values that show a change of a file: inode, size in bytes, and time in nanoseconds."""

    inode: int
    size: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """Return the stamp of a readable rollout, with its modification time."""
        return cls(status.st_ino & _NO_SIGN, status.st_size, status.st_mtime_ns)

    @classmethod
    def of_unreadable(cls, status: os.stat_result) -> "Stamp":
        """Return the stamp of an unreadable one, whose time shows new permissions too."""
        return cls(status.st_ino & _NO_SIGN, status.st_size, status.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class Summary:
    """A thread as a list shows it; times are seconds since 1970.

    `stamp` is the file's before it was read, `offset` the end of its last complete line, and `mark`
    a checksum of the bytes before that: with them, reading continues in a file that has grown.
    """

    id: str
    provider: str
    cwd: str
    source: str
    created_at: float
    updated_at: float
    name: str | None
    preview: str
    stamp: Stamp
    offset: int
    mark: int


def read_summary(path: Path, earlier: Summary | None = None) -> Summary:
    """Return a rollout's summary; if the file has only grown since `earlier`, read only the rest.

    Blocks. Raises OSError, UnreadableRollout.
    """
    with open_for_reading(path) as file:
        stamp = Stamp.of(os.fstat(file.fileno()))
        if earlier is not None and not _has_grown(file, stamp, earlier):
            earlier = None
        reading = _Reading(path, earlier)
        offset = 0 if earlier is None else earlier.offset
        file.seek(offset)
        for line in lines_of(file):
            reading.take(line)
            # A line without an end may be incomplete.
            if line.endswith(b"\n"):
                offset += len(line)
        return reading.summary(stamp, offset, _mark(file, offset))


def _has_grown(file: BinaryIO, stamp: Stamp, earlier: Summary) -> bool:
    """Return whether data was appended to the file and nothing else changed."""
    return (
        stamp.inode == earlier.stamp.inode
        and stamp.size > earlier.stamp.size >= earlier.offset
        and _mark(file, earlier.offset) == earlier.mark
    )


def _mark(file: BinaryIO, offset: int) -> int:
    return zlib.crc32(
        os.pread(file.fileno(), min(_MARK_BYTES, offset), max(0, offset - _MARK_BYTES))
    )


class _Reading:
    """Summary of the lines so far. `take` is called for every line, so it must be fast."""

    def __init__(self, path: Path, earlier: Summary | None) -> None:
        self._path = path
        self._thread = "" if earlier is None else earlier.id
        self._has_begun = earlier is not None
        self._provider = "" if earlier is None else earlier.provider
        self._cwd = "" if earlier is None else earlier.cwd
        self._source = "" if earlier is None else earlier.source
        self._created = 0.0 if earlier is None else earlier.created_at
        self._updated = 0.0 if earlier is None else earlier.updated_at
        self._name = None if earlier is None else earlier.name
        self._preview = "" if earlier is None else earlier.preview

    def take(self, line: bytes) -> None:
        """Add a line; a damaged one is ignored. Raises UnreadableRollout for a newer format."""
        head = _HEAD.match(line) if self._has_begun else None
        # An incomplete line is not a record.
        if head is not None and line.endswith(b"}\n") and self._shows_its_time_alone(head[1], line):
            at = float(head[2])
            if self._updated < at < YEAR_10000:
                self._updated = at
        elif line.strip():
            try:
                self._take(parse_record(line))
            except NewerFormat as error:
                raise UnreadableRollout(f"{self._path}: {error}") from None
            except ValueError:
                # Damaged, or of a type that this version does not know.
                pass

    def _shows_its_time_alone(self, kind: bytes, line: bytes) -> bool:
        if kind == b"item":
            return self._preview != "" or b'"userMessage"' not in line
        return kind in _UNSHOWN

    def _take(self, record: Record) -> None:
        if isinstance(record, ThreadRecord):
            if not self._has_begun:
                self._has_begun = True
                self._thread, self._source = record.id, record.source
                self._created = self._updated = record.at
                self._take_settings(record.settings)
            return
        if not self._has_begun and isinstance(record, TurnStartedRecord):
            # The first line is lost; the file's name has the thread's id.
            self._thread, self._source = thread_id_of(self._path) or "", APP_SERVER
            self._created, self._has_begun = record.at, self._thread != ""
        if not self._has_begun:
            return
        self._updated = max(self._updated, record.at)
        match record:
            case TurnStartedRecord():
                self._take_settings(record.settings)
            case NameRecord():
                self._name = record.name
            case ItemRecord(item=UserMessageItem() as message):
                self._preview = self._preview or preview_of(message)
            case _:
                pass

    def _take_settings(self, settings: ThreadSettings) -> None:
        self._provider, self._cwd = settings.model_provider, settings.cwd

    def summary(self, stamp: Stamp, offset: int, mark: int) -> Summary:
        """Return the summary. Raises UnreadableRollout if there was no thread record."""
        if not self._has_begun:
            raise UnreadableRollout(f"{self._path}: holds no thread record")
        return Summary(
            id=self._thread,
            provider=self._provider,
            cwd=self._cwd,
            source=self._source,
            created_at=self._created,
            updated_at=self._updated,
            name=self._name,
            preview=self._preview,
            stamp=stamp,
            offset=offset,
            mark=mark,
        )
