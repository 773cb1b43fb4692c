"""Where a thread's records go: a file, or memory for an ephemeral thread.

Here lives appending. A record is one write(2), done before the notification that tells of it, so
that what a client was told is never missing from the file of a server that died.
"""

import os
from pathlib import Path
from typing import Protocol

from reference_server.rollout.records import Record


class Recorder(Protocol):
    """The record of one thread, open for appending."""

    @property
    def path(self) -> Path | None:
        """The file; None when there is none."""
        ...

    def append(self, record: Record) -> None:
        """Add a record. Raises OSError."""
        ...

    def records(self) -> list[Record] | None:
        """Give what is held in memory; None when it is on disk."""
        ...

    def sync(self) -> None:
        """Bring everything appended to the disk itself. Blocks. Raises OSError."""
        ...

    def close(self) -> None:
        """Append no more."""
        ...


class FileRecorder:
    """A rollout file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._torn = self._ends_in_a_torn_line()
        self._synced = False

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def append(self, record: Record) -> None:
        """Write one line."""
        line = record.encode() + b"\n"
        if self._torn:
            line = b"\n" + line
        # Until the whole line is known to be there, the next one must not be glued to it.
        self._torn = True
        self._synced = False
        while line:
            line = line[os.write(self._descriptor, line) :]
        self._torn = False

    def records(self) -> None:
        """Nothing is kept in memory."""
        return

    def sync(self) -> None:
        """Call fsync(2)."""
        if not self._synced:
            self._synced = True
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Sync and close the file."""
        try:
            self.sync()
        finally:
            os.close(self._descriptor)

    def _ends_in_a_torn_line(self) -> bool:
        size = os.fstat(self._descriptor).st_size
        return size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"


class MemoryRecorder:
    """The record of an ephemeral thread: nothing on disk."""

    path = None

    def __init__(self) -> None:
        self._records: list[Record] = []

    def append(self, record: Record) -> None:
        """Keep the record."""
        self._records.append(record)

    def records(self) -> list[Record]:
        """Give all records so far."""
        return list(self._records)

    def sync(self) -> None:
        """Memory is as durable as it gets."""

    def close(self) -> None:
        """Nothing to release."""
