"""What a list shows of a stored thread, read from its rollout.

Here lives the fast way through the lines: only those that change what a list shows are parsed. What
the records mean lives in `rollout.records`; `rollout.reader` reads a thread whole.
"""

import os
import re
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from harness.wire.item import UserMessageItem
from reference_server.rollout.fold import UnreadableRollout, preview_of
from reference_server.rollout.records import (
    YEAR_10000,
    ItemRecord,
    NameRecord,
    NewerFormat,
    Record,
    ThreadRecord,
    TurnStartedRecord,
    parse_record,
)
from reference_server.safe_files import lines_of, open_for_reading

_HEAD = re.compile(rb'\{"type":"([a-z-]+)","at":(\d{1,12}(?:\.\d{1,12})?)[,}]')
_UNSHOWN = frozenset((b"history", b"steered", b"compacted", b"turn-completed", b"rollback"))
"""Records of which a list shows the time alone."""
_MARKED = 256
_NO_SIGN = (1 << 63) - 1
"""SQLite's integers have a sign, numbers of files have none."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """By what a change of a file is seen: its number, size in bytes, and time in nanoseconds."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """The stamp of a rollout that can be read."""
        return cls(status.st_ino & _NO_SIGN, status.st_size, status.st_mtime_ns)

    @classmethod
    def of_unreadable(cls, status: os.stat_result) -> "Stamp":
        """The same of one that cannot: a change of its permissions counts too."""
        return cls(status.st_ino & _NO_SIGN, status.st_size, status.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a list shows of one thread; times are seconds since 1970.

    `stamp` is that of the file before it was read, `offset` the end of its last whole line, and
    `mark` a checksum of the bytes before that: by these a file that has grown is read on.
    """

    id: str
    provider: str
    cwd: str
    source: str
    created: float
    updated: float
    name: str | None
    preview: str
    stamp: Stamp
    offset: int
    mark: int


def read_summary(path: Path, earlier: Summary | None = None) -> Summary:
    """Read a rollout's summary, only what is new where `earlier` is of the same file.

    Blocks. Raises OSError, UnreadableRollout.
    """
    with open_for_reading(path) as file:
        stamp = Stamp.of(os.fstat(file.fileno()))
        if earlier is not None and _has_grown(file, stamp, earlier):
            summary = replace(earlier, stamp=stamp)
            offset = earlier.offset
        else:
            summary, offset = None, 0
        file.seek(offset)
        for line in lines_of(file):
            summary = _with(summary, line, stamp, path)
            if line.endswith(b"\n"):
                offset += len(line)
        if summary is None:
            raise UnreadableRollout(f"{path}: does not begin with a thread record")
        return replace(summary, offset=offset, mark=_mark(file, offset))


def _has_grown(file: BinaryIO, stamp: Stamp, earlier: Summary) -> bool:
    """Tell whether the file is what it was, with more behind."""
    return (
        stamp.inode == earlier.stamp.inode
        and stamp.size > earlier.stamp.size >= earlier.offset
        and _mark(file, earlier.offset) == earlier.mark
    )


def _mark(file: BinaryIO, offset: int) -> int:
    return zlib.crc32(os.pread(file.fileno(), min(_MARKED, offset), max(0, offset - _MARKED)))


def _with(summary: Summary | None, line: bytes, stamp: Stamp, path: Path) -> Summary | None:
    """Give the summary after one more line. Raises UnreadableRollout."""
    if summary is not None and (at := _unshown(line, summary)) is not None:
        return replace(summary, updated=max(summary.updated, at))
    if not line.strip():
        return summary
    try:
        record = parse_record(line)
    except NewerFormat as error:
        raise UnreadableRollout(f"{path}: {error}") from None
    except ValueError:
        return summary
    if summary is not None:
        return _after(summary, record)
    if not isinstance(record, ThreadRecord):
        raise UnreadableRollout(f"{path}: does not begin with a thread record")
    return Summary(
        id=record.id,
        provider=record.settings.model_provider,
        cwd=record.settings.cwd,
        source=record.source,
        created=record.at,
        updated=record.at,
        name=None,
        preview="",
        stamp=stamp,
        offset=0,
        mark=0,
    )


def _unshown(line: bytes, summary: Summary) -> float | None:
    """Give the time of a record of which a list shows nothing else; None for any other line."""
    head = _HEAD.match(line)
    # One that was cut short is no record.
    if head is None or not line.endswith(b"}\n"):
        return None
    shows_nothing = head[1] in _UNSHOWN or (
        head[1] == b"item" and (summary.preview != "" or b'"userMessage"' not in line)
    )
    at = float(head[2])
    return at if shows_nothing and at < YEAR_10000 else None


def _after(summary: Summary, record: Record) -> Summary:
    if isinstance(record, ThreadRecord):
        return summary
    summary = replace(summary, updated=max(summary.updated, record.at))
    match record:
        case TurnStartedRecord(settings=settings):
            return replace(summary, provider=settings.model_provider, cwd=settings.cwd)
        case NameRecord(name=name):
            return replace(summary, name=name)
        case ItemRecord(item=UserMessageItem() as message):
            return replace(summary, preview=summary.preview or preview_of(message))
        case _:
            return summary
