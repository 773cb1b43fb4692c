"""Reading one file, safely.

Here lives what counts as a file for a patch: a regular one that is not reached through a link of
its own name, and not too large to hold. What is done with it is the callers'.
"""

import errno
import os
import stat
from dataclasses import dataclass

MAX_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Found:
    """What is on disk: content, permission bits, user and group."""

    content: bytes
    mode: int
    owner: tuple[int, int]


def read_file(path: str, folder: int | None = None) -> Found | None:
    """Read a file, `path` from the open folder if one is given; None if nothing is there.

    Raises OSError, also for what is no file, with words in `strerror`.
    """
    try:
        _check(os.stat(path, dir_fd=folder, follow_symlinks=False))
        # Not blocking, lest a pipe that has taken its place since is waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _check(status)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(errno.EFBIG, _TOO_LARGE)
    return Found(content, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid))


_TOO_LARGE = f"is too large for a patch (more than {MAX_BYTES // 2**20} MiB)"


def _check(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "is a symbolic link; name the file that it points to")
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, "is a folder; a patch changes files")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")
    if status.st_size > MAX_BYTES:
        raise OSError(errno.EFBIG, _TOO_LARGE)
