"""Moves of rollouts into the archive of their home, and back.

A rollout keeps its relative path, so that it returns to its former place. Source: session-protocol
"Thread storage and loading"; the folders are not shown there.
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
    """Move a rollout by one rename, and sync the file and both folders to disk. Blocks.

    Raises OSError if it was not moved, also if `new` exists: nothing is overwritten.
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
        # Only logged: the file has been moved.
        _log.error("%s: not synced to disk: %s", folder, error)
