"""Files and folders of the home, opened and made safely.

Here lives what may be opened as a file: a regular one under its own name. A pipe would be waited
for, a device may never end, and a link leads out of the home. What is in a file is not known here.
"""

import contextlib
import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

# Not blocking, lest a pipe that has taken the file's place since it was looked at is waited for.
LINE_LIMIT = 1 << 27
"""Bytes of a line that is read at once; no record of ours comes near."""
LOCK_TIME = 5.0
"""Seconds; what servers do under a lock takes thousandths."""
_LOOK_AGAIN = 0.01
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_regular(path: Path, flags: int) -> int:
    """Open a file, or make one if `flags` say so (0600). Raises OSError, which names the file."""
    try:
        # Looked at first: opening a device can do something by itself.
        _check(os.stat(path, follow_symlinks=False), path)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    descriptor = os.open(path, flags | _SAFELY, 0o600)
    try:
        _check(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_for_reading(path: Path) -> BinaryIO:
    """Open a file for reading. Raises OSError."""
    return open(open_regular(path, os.O_RDONLY), "rb")


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Give the lines of a file; of one longer than LINE_LIMIT its beginning, as several lines."""
    while line := file.readline(LINE_LIMIT):
        yield line


def lock(descriptor: int, path: Path) -> None:
    """Lock an open file against other servers. Blocks, for LOCK_TIME at most. Raises OSError."""
    deadline = time.monotonic() + LOCK_TIME
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                words = f"another process has had it locked for {LOCK_TIME:g} s; end that one"
                raise OSError(errno.EAGAIN, words, str(path)) from None
            # The system tells nobody when a lock is free, unless one waits for ever.
            threading.Event().wait(_LOOK_AGAIN)
        else:
            return


def _check(status: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "is a symbolic link, not a file", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", str(path))


def make_private(folder: Path) -> None:
    """Make a folder and what is missing above it, for nobody but the user, whatever the umask.

    The rights of what is there already are its owner's matter. Raises OSError.
    """
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_private(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)
        # A umask takes rights away, and may take the user's own.
        folder.chmod(0o700)
        return
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
