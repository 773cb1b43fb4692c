"""Recorders of a thread: to a file, or to memory for an ephemeral thread.

A record is written with write(2) before its notification is sent, so that everything clients have
seen is in the file even if the server is killed.
"""

import errno
import os
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Protocol

from reference_server.rollout.records import Record
from reference_server.safe_files import make_private, open_regular

MAX_OPEN = 64
"""Maximum open rollouts: a server may load more threads than a process may open files."""


class Recorder(Protocol):
    """Records of one thread, open for appending."""

    @property
    def path(self) -> Path | None:
        """The rollout file; None for an ephemeral thread."""
        ...

    def append(self, record: Record) -> None:
        """Append a record. Raises OSError."""
        ...

    def records(self) -> list[Record] | None:
        """Return the records of an ephemeral thread; None if they are on disk."""
        ...

    def sync(self) -> None:
        """Flush all that was appended to the disk (fsync). Blocks. Raises OSError."""
        ...

    def close(self) -> None:
        """Sync and release the file; nothing is appended afterwards. Blocks. Raises OSError."""
        ...


class _OpenFiles:
    """Descriptors for appending, by path; the most recently used ones stay open.

    Use a descriptor only while holding the lock: another thread may close it.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self._descriptors: OrderedDict[Path, int] = OrderedDict()

    def descriptor(self, path: Path, *, create: bool = False) -> int:
        """Return the descriptor of a file, opening it if it is not open. Raises OSError."""
        descriptor = self._descriptors.get(path)
        if descriptor is None:
            flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0)
            descriptor = self._descriptors[path] = open_regular(path, flags)
            if len(self._descriptors) > MAX_OPEN:
                _, oldest = self._descriptors.popitem(last=False)
                os.close(oldest)
        else:
            self._descriptors.move_to_end(path)
        return descriptor

    def close(self, path: Path) -> None:
        """Close the descriptor of a file, if it is open."""
        descriptor = self._descriptors.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)


_files = _OpenFiles()


class FileRecorder:
    """Recorder to a rollout file, made with `create` if it is missing. Raises OSError."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self._path = path
        if create:
            make_private(path.parent)
        with _files.lock:
            descriptor = _files.descriptor(path, create=create)
            self._identity = _identity(os.fstat(descriptor))
            self._torn = _ends_in_torn_line(descriptor)
        self._synced = False

    @property
    def path(self) -> Path:
        """The rollout file."""
        return self._path

    def append(self, record: Record) -> None:
        """Append one line to the file. Raises OSError, also if it was removed or replaced."""
        line = record.encode() + b"\n"
        if self._torn:
            line = b"\n" + line
        self._check_place()
        # If this write fails halfway, the next record must begin on a new line.
        self._torn = True
        self._synced = False
        with _files.lock:
            descriptor = _files.descriptor(self._path)
            try:
                while line:
                    line = line[os.write(descriptor, line) :]
            except OSError as error:
                # The error of a descriptor does not name the file.
                raise OSError(error.errno, error.strerror, str(self._path)) from error
        self._torn = False

    def _check_place(self) -> None:
        """Raise OSError if the file was removed or replaced: writes to it would be lost."""
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            words = "was removed while its thread was in use; put it back, or start a new thread"
            raise FileNotFoundError(errno.ENOENT, words, str(self._path)) from None
        if _identity(status) != self._identity:
            words = "was replaced while its thread was in use; start a new thread"
            raise OSError(errno.ESTALE, words, str(self._path))

    def records(self) -> None:
        """Return None: nothing is kept in memory."""
        return

    def sync(self) -> None:
        """Call fsync(2), unless nothing was appended since the last call."""
        with _files.lock:
            if self._synced:
                return
            descriptor = os.dup(_files.descriptor(self._path))
            self._synced = True
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Sync and close the file."""
        try:
            self.sync()
        finally:
            with _files.lock:
                _files.close(self._path)


class MemoryRecorder:
    """Recorder of an ephemeral thread, in memory."""

    path = None

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records = list(records)

    def append(self, record: Record) -> None:
        """Keep the record."""
        self._records.append(record)

    def records(self) -> list[Record]:
        """Return all records so far."""
        return list(self._records)

    def sync(self) -> None:
        """Do nothing: there is no disk."""

    def close(self) -> None:
        """Do nothing: there is no file."""


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _ends_in_torn_line(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
