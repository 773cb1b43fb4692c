"""Moving rollouts into the archive of their home, and back.

Its place in the archive is the one that it had among the sessions, so that it comes back to where
it was. Source: session-protocol "Thread storage and loading"; the folders are not shown there.
"""

import errno
import logging
import os
from pathlib import Path

from reference_server.config.home import Home
from reference_server.safe_files import make_private, open_regular

_log = logging.getLogger(__name__)


def archived_place(home: Home, path: Path) -> Path:
    """Return the place in the archive of a rollout among the sessions."""
    return home.archived_sessions / path.relative_to(home.sessions)


def restored_place(home: Home, path: Path) -> Path:
    """Return the place among the sessions of a rollout in the archive."""
    return home.sessions / path.relative_to(home.archived_sessions)


def move(old: Path, new: Path) -> None:
    """Move a rollout. Blocks. Raises OSError where it was not moved.

    It is the same file, whole in one place at each moment; both folders are on the disk afterwards.
    Nothing is overwritten.
    """
    # A link or a pipe of that name is not a rollout.
    descriptor = open_regular(old, os.O_RDONLY)
    try:
        make_private(new.parent)
        if os.path.lexists(new):
            words = "is in the way; move away what is there, then try again"
            raise FileExistsError(errno.EEXIST, words, str(new))
        os.fsync(descriptor)
        os.rename(old, new)
    finally:
        os.close(descriptor)
    for folder in (new.parent, old.parent):
        _sync(folder)


def _sync(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # The file has been moved all the same.
        _log.error("%s: not synced to disk: %s", folder, error)
