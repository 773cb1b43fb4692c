"""Opening files and making folders of the home safely.

Of the home only regular files are opened, and never through a symbolic link: reading a pipe would
wait for a writer, a device may never end, and a link may lead out of the home. Files elsewhere, to
which links may lead, are opened by `open_checked`.
"""

import contextlib
import errno
import fcntl
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

LINE_LIMIT = 1 << 27
"""Bytes of a line that is read at once; no record that a server writes comes near."""
LOCK_TIME = 5.0
"""Seconds to wait for a lock; a server holds one for milliseconds."""
_RETRY_SECONDS = 0.01
# Not blocking: a pipe may have taken the file's place since it was looked at.
_SAFE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_regular(path: Path, flags: int) -> int:
    """Open a regular file; O_CREAT makes it with mode 0600. Raises OSError, with the path in it."""
    try:
        # Checked before it is opened too: opening a device can have an effect by itself.
        _check_regular(os.stat(path, follow_symlinks=False), path)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    descriptor = os.open(path, flags | _SAFE_FLAGS, 0o600)
    try:
        _check_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_checked(path: str, check: Callable[[str, os.stat_result], None]) -> int:
    """Open a file for reading after `check` has approved its real path and its status.

    Links are followed. The file that was checked is the one that is opened, even if names change
    meanwhile. A device or a pipe that `check` refuses is never opened: opening alone can have
    effects, or last for ever. Raises OSError, and whatever `check` raises.
    """
    if sys.platform != "linux":
        real = os.path.realpath(path)
        check(real, os.stat(real))
        return os.open(real, os.O_RDONLY | _SAFE_FLAGS)
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        name = f"/proc/self/fd/{handle}"
        check(os.readlink(name), os.fstat(handle))
        return os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(handle)


def open_for_reading(path: Path) -> BinaryIO:
    """Open a file for reading. Raises OSError."""
    return open(open_regular(path, os.O_RDONLY), "rb")


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file; one longer than LINE_LIMIT comes in several pieces."""
    while line := file.readline(LINE_LIMIT):
        yield line


def lock(descriptor: int, path: Path, patience: float | None = None) -> None:
    """Lock an open file against other servers. Blocks for at most `patience` seconds.

    The default is LOCK_TIME. Raises OSError if another process keeps the lock longer.
    """
    limit = LOCK_TIME if patience is None else patience
    deadline = time.monotonic() + limit
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                words = f"another process has had it locked for {limit:g} s; end that one"
                raise OSError(errno.EAGAIN, words, str(path)) from None
            # flock itself can only wait without a time limit.
            threading.Event().wait(_RETRY_SECONDS)
        else:
            return


def _check_regular(status: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "is a symbolic link, not a file", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", str(path))


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents with mode 0700, whatever the umask. Raises OSError.

    Folders that exist keep their permissions.
    """
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_private(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)
        # The umask may even have taken permissions from the user.
        folder.chmod(0o700)
        return
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
