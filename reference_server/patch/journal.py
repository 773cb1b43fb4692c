"""What a patch is about to do, written down before it does it.

Here live the file, its three states, and reading it again. It is one line with the state and one
with all that a later server needs to know when this one is killed in the middle: which names, what
was and what shall be there. What is then done is `settle`'s matter. Changing the state overwrites
ten bytes, which needs no room on a full disk.
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
LONGEST = 1 << 27
"""Bytes of a journal that are read; a patch that is made has less to say."""


class State(Enum):
    """How far a patch has come; all words have the same length."""

    PREPARED = b"prepared \n"
    """Some of its writes may have been made."""
    COMMITTED = b"committed\n"
    """All of them were, and stay."""
    UNDONE = b"undone   \n"
    """None of them is left to be taken back."""


def _check_place(path: str) -> None:
    """Take no path that the system would not; raises ValueError."""
    check_path(path)
    if b"\0" in os.fsencode(path):
        raise ValueError("a path holds a NUL character")


@dataclass(frozen=True, slots=True)
class Noted:
    """One name that a patch changes, and the temporary ones beside it; None: no file there."""

    folder: str
    name: str
    fresh: str
    old: str
    before: str | None
    after: str | None

    def __post_init__(self) -> None:
        """Take no name that leads elsewhere; raises ValueError."""
        if not os.path.isabs(self.folder) or self.name in ("", ".", "..") or "/" in self.name:
            raise ValueError("a journal names a folder and a name in it")
        _check_place(self.folder)
        _check_place(self.name)
        if not TEMPORARY.fullmatch(self.fresh) or not TEMPORARY.fullmatch(self.old):
            raise ValueError("a journal names temporary files of patches only")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a journal says. `heading` is its owner's."""

    state: State
    heading: dict[str, Any]
    writes: tuple[Noted, ...]
    made: tuple[str, ...]
    """Folders that were missing, the innermost first."""


class Journal:
    """The journal of one patch, whose file is named, and made, when the patch begins.

    Where it is not `required`, a patch is made without one on a disk that takes none.
    """

    def __init__(
        self, name: Callable[[], Path], heading: dict[str, Any], *, required: bool = True
    ) -> None:
        self._name = name
        self._heading = heading
        self._required = required
        self._path: Path | None = None

    def begin(self, writes: list[Noted], made: list[str]) -> None:
        """Write everything down. Raises OSError."""
        said = {
            "version": VERSION,
            "heading": self._heading,
            "writes": [asdict(write) for write in writes],
            "made": made,
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
            rest = memoryview(State.PREPARED.value + json.dumps(said).encode() + b"\n")
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
        """Remove the file: what became of the patch is on record. Never raises.

        What cannot be removed is settled by a later server, who finds nothing left to do.
        """
        path, self._path = self._path, None
        if path is not None:
            try:
                os.unlink(path)
            except OSError as error:
                _log.warning("%s: not removed: %s", path, error.strerror)


def digest(content: bytes | None) -> str | None:
    """Give what tells a file's content from others."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def read_journal(path: Path) -> Entry:
    """Read a journal. Raises OSError, or ValueError where it was never finished or is none."""
    with open_for_reading(path) as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid():
            raise ValueError("belongs to another user")
        state, line = State(file.readline(LONGEST)), file.readline(LONGEST)
    try:
        said = json.loads(line)
        if said["version"] != VERSION:
            raise ValueError("is of another version")
        heading: dict[str, Any] = dict(said["heading"])
        made: list[str] = list(said["made"])
        writes = tuple(Noted(**write) for write in said["writes"])
        for one in made:
            _check_place(one)
        if not all(os.path.isabs(one) for one in made):
            raise ValueError("is no journal")
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError("is no journal") from error
    return Entry(state, heading, writes, tuple(made))
