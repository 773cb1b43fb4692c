"""Running servers of a home.

A server holds the lock `servers/<id>.lock` as long as it runs: the system releases it however the
server ends. By trying to take the lock, other servers can see whether it is running or was killed.
The leftovers of a killed server are settled by `recovery`.
"""

import contextlib
import fcntl
import itertools
import os
import re
from collections.abc import Generator
from pathlib import Path
from threading import Lock

from reference_server.config.home import Home
from reference_server.safe_files import make_private, open_regular

_ID = re.compile("[0-9a-f]{16}")
JOURNAL = ".patch.json"


class Presence:
    """The id of this server, and its lock. May be used from several threads."""

    def __init__(self, home: Home) -> None:
        self._folder = home.servers
        self._lock = Lock()
        self._held: tuple[str, int] | None = None
        self._journals = itertools.count(1)

    def id(self) -> str:
        """Return this server's id; the first call takes its lock. Raises OSError."""
        with self._lock:
            while self._held is None:
                self._held = self._take_lock()
            return self._held[0]

    def _take_lock(self) -> tuple[str, int] | None:
        """Take the lock of a new id; None if another server removes that lock file meanwhile."""
        make_private(self._folder)
        server = os.urandom(8).hex()
        path = _lock_file(self._folder, server)
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                return server, descriptor
        except BlockingIOError:
            pass
        os.close(descriptor)
        return None

    def new_journal(self) -> Path:
        """Return a new path for the journal of a patch, with which others can finish the patch."""
        return self._folder / f"{self.id()}.{next(self._journals)}{JOURNAL}"

    def release(self) -> None:
        """Give up the id and its lock, as the server ends."""
        with self._lock:
            if self._held is not None:
                server, descriptor = self._held
                self._held = None
                _lock_file(self._folder, server).unlink(missing_ok=True)
                os.close(descriptor)


def is_running(home: Home, server: str) -> bool:
    """Return whether the server of that id is running."""
    if not _ID.fullmatch(server):
        return False
    try:
        descriptor = open_regular(_lock_file(home.servers, server), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def leftovers(home: Home) -> dict[str, list[Path]]:
    """Return the ids of servers that have files here, with their journals, oldest first."""
    journals_of: dict[str, list[Path]] = {}
    with contextlib.suppress(FileNotFoundError), os.scandir(home.servers) as entries:
        for entry in entries:
            server, _, rest = entry.name.partition(".")
            if _ID.fullmatch(server):
                journals = journals_of.setdefault(server, [])
                if rest.endswith(JOURNAL):
                    journals.append(Path(entry.path))
    for journals in journals_of.values():
        journals.sort(key=lambda path: (len(path.name), path.name))
    return journals_of


@contextlib.contextmanager
def taking_over(home: Home, server: str) -> Generator[bool]:
    """Yield True while holding the lock of a server that is gone, to settle its leftovers.

    The lock file is removed at the end. Yields False, without the lock, if that server is running
    or another one settles it. Raises OSError.
    """
    path = _lock_file(home.servers, server)
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        gone = _take_over_lock(descriptor) and _is_at(descriptor, path)
        yield gone
        if gone:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _take_over_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # A shared lock is that of another server's `is_running`, which releases it at once.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Return whether the open file is still the one at this path."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(status, os.fstat(descriptor))


def _lock_file(folder: Path, server: str) -> Path:
    return folder / f"{server}.lock"
