"""Private folder of a stage or a scripted play, removed at its end.

A lock marks a folder in use; the system releases it however the server ends, and the next stage
removes the folder of a killed one.
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
def private_root(parent: Path | None = None) -> Generator[Path]:
    """Yield a new folder and remove it at the end; first remove the folders of killed stages.

    It is made in `parent`, else in the folder for temporary files. Raises OSError if it cannot be.
    """
    parent = Path(os.path.realpath(parent or tempfile.gettempdir()))
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
    """Remove, in `parent`, the folders of this user's killed stages; errors are ignored."""
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
