"""Journal of a patch: its changes, written to disk before they are made.

If the server is killed while it applies the patch, a later server reads the journal and completes
or undoes the patch (`settle`). One line has the state, the next the changed files with digests of
their contents. Changing the state overwrites ten bytes, which works on a full disk, too.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from reference_server.limits import check_path
from reference_server.safe_files import open_for_reading, open_regular

_log = logging.getLogger(__name__)

TEMPORARY = re.compile(r"\.patch-[0-9a-f]{16}\.tmp")
VERSION = 1
MAX_JOURNAL_BYTES = 1 << 27
"""Maximum bytes of a journal's line, far more than a patch needs."""


class State(Enum):
    """Stage of a patch; all values have the same length."""

    PREPARED = b"prepared \n"
    """Some changes may have been made; they must be undone."""
    COMMITTED = b"committed\n"
    """All changes were made; the old files must be removed."""
    UNDONE = b"undone   \n"
    """Nothing is left to undo."""


def _check_place(path: str) -> None:
    """Raise ValueError for a path that the system rejects."""
    check_path(path)
    if b"\0" in os.fsencode(path):
        raise ValueError("a path holds a NUL character")


@dataclass(frozen=True, slots=True)
class JournaledWrite:
    """A file of a patch, its temporary names, and digests of its contents, None for no file."""

    folder: str
    name: str
    fresh: str
    old: str
    before: str | None
    after: str | None

    def __post_init__(self) -> None:
        """Raise ValueError for a name that leads out of its folder, or is not a temporary one."""
        if not os.path.isabs(self.folder) or self.name in ("", ".", "..") or "/" in self.name:
            raise ValueError("a journal names a folder and a name in it")
        _check_place(self.folder)
        _check_place(self.name)
        if not TEMPORARY.fullmatch(self.fresh) or not TEMPORARY.fullmatch(self.old):
            raise ValueError("a journal names temporary files of patches only")


@dataclass(frozen=True, slots=True)
class Entry:
    """Content of a journal. `heading` is the caller's data."""

    state: State
    heading: dict[str, Any]
    writes: tuple[JournaledWrite, ...]
    made_folders: tuple[str, ...]
    """Folders that the patch makes, the innermost first."""


class Journal:
    """Journal of one patch; `name` returns the path of its file, made when the patch begins.

    If it is not `required` and its file cannot be made, the patch continues without it.
    """

    def __init__(
        self, name: Callable[[], Path], heading: dict[str, Any], *, required: bool = True
    ) -> None:
        self._name = name
        self._heading = heading
        self._required = required
        self._path: Path | None = None

    def begin(self, writes: list[JournaledWrite], folders: list[str]) -> None:
        """Write the journal, with state PREPARED. Raises OSError."""
        content = {
            "version": VERSION,
            "heading": self._heading,
            "writes": [asdict(write) for write in writes],
            "made": folders,
        }
        try:
            path = self._name()
            descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except OSError:
            if self._required:
                raise
            return
        self._path = path
        try:
            rest = memoryview(State.PREPARED.value + json.dumps(content).encode() + b"\n")
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError as error:
            self.forget()
            raise OSError(error.errno, error.strerror, str(path)) from error
        finally:
            os.close(descriptor)

    def mark(self, state: State) -> None:
        """Change the state. Raises OSError."""
        if self._path is not None:
            descriptor = open_regular(self._path, os.O_WRONLY)
            try:
                os.pwrite(descriptor, state.value, 0)
            finally:
                os.close(descriptor)

    def forget(self) -> None:
        """Remove the file, once the result of the patch is in the rollout. Never raises.

        If that fails, a later server settles the patch and finds nothing to do.
        """
        path, self._path = self._path, None
        if path is not None:
            try:
                os.unlink(path)
            except OSError as error:
                _log.warning("%s: not removed: %s", path, error.strerror)


def digest(content: bytes | None) -> str | None:
    """Return the digest of a file's content; None for no file."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def read_journal(path: Path) -> Entry:
    """Read a journal. Raises OSError, or ValueError if it is incomplete or not a journal."""
    with open_for_reading(path) as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid():
            raise ValueError("belongs to another user")
        state, line = State(file.readline(MAX_JOURNAL_BYTES)), file.readline(MAX_JOURNAL_BYTES)
    try:
        content = json.loads(line)
        if content["version"] != VERSION:
            raise ValueError("is of another version")
        heading: dict[str, Any] = dict(content["heading"])
        folders: list[str] = list(content["made"])
        writes = tuple(JournaledWrite(**write) for write in content["writes"])
        for folder in folders:
            _check_place(folder)
        if not all(os.path.isabs(one) for one in folders):
            raise ValueError("is no journal")
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError("is no journal") from error
    return Entry(state, heading, writes, tuple(folders))
