"""Reading one file, safely.

Here lives what counts as a file for a patch: a regular one that is not reached through a link of
its own name, and not too large to hold; and the way to it through folders that are no links. What
is done with it is the callers'.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass

MAX_BYTES = 16 * 2**20
# Walking needs no right to list a folder where the system has this.
FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Forbids = Callable[[str, os.stat_result | None], str | None]
"""Says of a resolved path why it may not even be read; None: it may.

Asked before the file is looked at, then with the status of the open file, before it is read.
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What is on disk: content, permission bits, user and group."""

    content: bytes
    mode: int
    owner: tuple[int, int]


def open_folder(path: str) -> int:
    """Open a folder from the root on, through no link: one is no folder here. Raises OSError."""
    folder = os.open("/", FOLDER_FLAGS)
    for name in filter(None, path.split("/")):
        above = folder
        try:
            folder = os.open(name, FOLDER_FLAGS, dir_fd=above)
        finally:
            os.close(above)
    return folder


def read_in_place(real: str, forbids: Forbids) -> Found | None:
    """Read the file with a resolved path; None if it is not there, also if a link leads there now.

    What is judged is the open file, not its name, which can mean another one at any moment.
    Raises OSError as `read_file` does, also for what is forbidden.
    """
    above, name = os.path.split(real)
    try:
        folder = open_folder(above)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise

    def judge(descriptor: int, status: os.stat_result) -> None:
        where = real
        if sys.platform == "linux":
            # Its folder may have been moved after it was opened.
            where = os.readlink(f"/proc/self/fd/{descriptor}")
        if why := forbids(where, status):
            raise OSError(errno.EACCES, why)

    try:
        return read_file(name, folder, judge)
    finally:
        os.close(folder)


def read_file(
    path: str,
    folder: int | None = None,
    judge: Callable[[int, os.stat_result], None] = lambda _descriptor, _status: None,
) -> Found | None:
    """Read a file, `path` from the open folder if one is given; None if nothing is there.

    `judge` sees it open before it is read, and may raise. Raises OSError, also for what is no file,
    with words in `strerror`.
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
        judge(descriptor, status)
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
