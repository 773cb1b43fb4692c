"""Safe reading of a file for a patch.

A patch may change only regular files that are not links and not too large to hold in memory, in
folders that are not links either.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass

MAX_BYTES = 16 * 2**20
# With O_PATH, opening a folder does not need the permission to list it.
FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Forbids = Callable[[str, os.stat_result | None], str | None]
"""A function that returns why a resolved path may not be read, None if it may.

It is called with None as status before the file is opened, and with the open file's status before
it is read.
"""


@dataclass(frozen=True, slots=True)
class FileContent:
    """Content, permission bits, and user and group ids of a file."""

    content: bytes
    mode: int
    owner: tuple[int, int]


def open_folder(path: str) -> int:
    """Return the descriptor of a folder, opened from the root without links. Raises OSError."""
    folder = os.open("/", FOLDER_FLAGS)
    for name in filter(None, path.split("/")):
        parent = folder
        try:
            folder = os.open(name, FOLDER_FLAGS, dir_fd=parent)
        finally:
            os.close(parent)
    return folder


def read_in_place(real: str, forbids: Forbids) -> FileContent | None:
    """Read the file at a resolved path; None if there is none, or a folder was replaced by a link.

    `forbids` checks the open file, since its name may lead to another one at any moment. Raises
    OSError as `read_file` does, also for a forbidden file.
    """
    parent, name = os.path.split(real)
    try:
        folder = open_folder(parent)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise

    def judge(descriptor: int, status: os.stat_result) -> None:
        path = real
        if sys.platform == "linux":
            # Its folder may have been moved after it was opened.
            path = os.readlink(f"/proc/self/fd/{descriptor}")
        if reason := forbids(path, status):
            raise OSError(errno.EACCES, reason)

    try:
        return read_file(name, folder, judge)
    finally:
        os.close(folder)


def read_file(
    path: str,
    folder: int | None = None,
    judge: Callable[[int, os.stat_result], None] = lambda _descriptor, _status: None,
) -> FileContent | None:
    """Read a file, with `path` relative to the open folder if given; None if it does not exist.

    `judge` is called with the open file before it is read, and may raise. Raises OSError, also for
    anything but a regular file, with the reason in `strerror`.
    """
    try:
        _check_regular(os.stat(path, dir_fd=folder, follow_symlinks=False))
        # Not blocking: a pipe may have replaced the file meanwhile.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _check_regular(status)
        judge(descriptor, status)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(errno.EFBIG, _TOO_LARGE)
    return FileContent(content, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid))


_TOO_LARGE = f"is too large for a patch (more than {MAX_BYTES // 2**20} MiB)"


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "is a symbolic link; name the file that it points to")
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, "is a folder; a patch changes files")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")
    if status.st_size > MAX_BYTES:
        raise OSError(errno.EFBIG, _TOO_LARGE)
