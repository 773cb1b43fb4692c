"""Claims of a home's servers on the threads that they have open for writing.

A server locks byte N of `threads.lock` as long as it has thread `thr_N` open. The system releases
these locks however the server ends, so nothing is left behind, and one open file serves any number
of threads. Two servers writing to one rollout would not know of each other's turns, so the second
is refused (ADR 18).
"""

import fcntl
import os
import struct
from pathlib import Path

from reference_server.config.home import Home
from reference_server.ids import thread_number
from reference_server.safe_files import make_private, open_regular

_OPEN_FILE_LOCKS: int | None = getattr(fcntl, "F_OFD_SETLK", None)
"""Command for locks of an open file; None if there are only locks that a whole process shares."""
_FLOCK = "hhqqi4x"
"""struct flock: type, whence, start, length, process."""


class Claims:
    """The threads that this server has open. Used on the event loop; no call blocks for long."""

    def __init__(self, home: Home) -> None:
        self._path = home.claims
        self._descriptor: int | None = None

    def take(self, thread_id: str) -> bool:
        """Claim a thread; return False if another running server has it. Raises OSError."""
        if self._descriptor is None:
            make_private(self._path.parent)
            self._descriptor = open_regular(self._path, os.O_RDWR | os.O_CREAT)
        try:
            _set(self._descriptor, fcntl.F_WRLCK, thread_number(thread_id), self._path)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def release(self, thread_id: str) -> None:
        """Release the claim on a thread. Raises OSError."""
        if self._descriptor is not None:
            _set(self._descriptor, fcntl.F_UNLCK, thread_number(thread_id), self._path)

    def close(self) -> None:
        """Release all claims, as the server ends."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _set(descriptor: int, kind: int, byte: int, path: Path) -> None:
    try:
        if _OPEN_FILE_LOCKS is not None:
            request = struct.pack(_FLOCK, kind, os.SEEK_SET, byte, 1, 0)
            fcntl.fcntl(descriptor, _OPEN_FILE_LOCKS, request)
        else:
            operation = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
            fcntl.lockf(descriptor, operation, 1, byte)
    except (BlockingIOError, PermissionError):
        raise
    except OSError as error:
        # The error of a descriptor does not name the file.
        raise OSError(error.errno, error.strerror, str(path)) from error
