"""Files and folders of the home, opened and made safely.

Here lives what may be opened as a file: a regular one under its own name. A pipe would be waited
for, a device may never end, and a link leads out of the home. What is in a file is not known here.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

# Not blocking, lest a pipe that has taken the file's place since it was looked at is waited for.
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


def opened(path: Path) -> BinaryIO:
    """Open a file for reading. Raises OSError."""
    return open(open_regular(path, os.O_RDONLY), "rb")


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
