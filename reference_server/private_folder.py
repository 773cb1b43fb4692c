"""The private folder of a stage or a scripted play: made, held, and removed, even after a kill.

A lock says that a folder is in use: the system releases it however its server ends.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

PREFIX = "agent-stage-"
_LOCK = "lock"


@contextlib.contextmanager
def private_root() -> Generator[Path]:
    """Make a folder for the length of the block; removes what killed stages have left beside it.

    Raises OSError where none can be made.
    """
    parent = Path(os.path.realpath(tempfile.gettempdir()))
    sweep(parent)
    root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    descriptor = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
        os.close(descriptor)


def sweep(parent: Path) -> None:
    """Remove the folders of stages of this user that were killed."""
    with contextlib.suppress(OSError):
        for root in parent.glob(f"{PREFIX}*"):
            if not root.is_symlink() and root.stat().st_uid == os.getuid():
                _remove_if_abandoned(root)


def _remove_if_abandoned(root: Path) -> None:
    try:
        descriptor = os.open(root / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return  # It is being made, or does not belong to a stage.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(root, ignore_errors=True)
    except OSError:
        return  # Its stage is running.
    finally:
        os.close(descriptor)
