"""Check of file permissions for a server that runs as root.

A confined command has none of root's capabilities, so permissions bind it, though not the server.
For any other user the kernel enforces them on the server itself. An access control list is not
read; it counts as a denial.
"""

import os
import stat
import sys

_ACCESS_LIST = "system.posix_acl_access"
_READ, _SEARCH = 4, 1


def may_read(real: str, status: os.stat_result | None = None) -> bool:
    """Return whether permissions let a command read a resolved path; True unless run by root.

    `status` is that of the open file; without it only the folders above it are checked.
    """
    if os.geteuid() != 0:
        return True
    if status is not None and not _lets(status, real, _READ):
        return False
    return all(_can_be_searched(folder) for folder in _folders(real))


def _folders(path: str) -> list[str]:
    folders: list[str] = []
    while (parent := os.path.dirname(path)) != path:
        folders.append(parent)
        path = parent
    return folders


def _can_be_searched(folder: str) -> bool:
    try:
        status = os.stat(folder, follow_symlinks=False)
    except OSError:
        # A folder that does not exist forbids nothing.
        return True
    return not stat.S_ISDIR(status.st_mode) or _lets(status, folder, _SEARCH)


def _lets(status: os.stat_result, path: str, right: int) -> bool:
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.geteuid():
        return bool(mode >> 6 & right)
    if _has_access_list(path):
        return False
    in_group = status.st_gid == os.getegid() or status.st_gid in os.getgroups()
    return bool((mode >> 3 if in_group else mode) & right)


def _has_access_list(path: str) -> bool:
    if sys.platform != "linux":
        return False
    try:
        return _ACCESS_LIST in os.listxattr(path, follow_symlinks=False)
    except OSError:
        return False
