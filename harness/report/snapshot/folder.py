"""The folder of a user's snapshots: what was accepted, what is pending, what is unused.

    DIR/<target>/<scenario>.transcript              accepted: belongs into the repository
    DIR/.pending/<target>/<scenario>.transcript     what a run said instead
    DIR/.pending/<target>/<scenario>.unused         no whole run plays it: why, in one line

A file is written beside its place and moved there, so that a full disk or a kill leaves the former
one whole. Each scenario has files of its own: any number of workers write at the same time.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.errors import UsageError
from harness.report.snapshot.files import Snapshot, SnapshotError, read, written

SUFFIX, UNUSED = ".transcript", ".unused"
PENDING = ".pending"
_IGNORED = "# Made by harness: what waits for `harness snapshots review`.\n*\n"


class State(StrEnum):
    """States of a snapshot that waits for a decision."""

    NEW = "new"
    CHANGED = "changed"
    UNUSED = "unused"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A snapshot that waits for a decision, with what is accepted and what is pending.

    `problem` is why a file of it cannot be read, or why it is unused.
    """

    target: str
    scenario: str
    state: State
    accepted: Snapshot | None = None
    pending: Snapshot | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """The target and the scenario."""
        return f"{self.target}/{self.scenario}"


class Folder:
    """One folder of snapshots. Whatever it does raises `OSError` where the disk refuses."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def accepted_file(self, target: str, scenario: str) -> Path:
        """Return the path of an accepted snapshot."""
        return self.path / target / f"{scenario}{SUFFIX}"

    def pending_file(self, target: str, scenario: str, suffix: str = SUFFIX) -> Path:
        """Return the path of a pending one, or with `UNUSED` of the note that nobody plays it."""
        return self.path / PENDING / target / f"{scenario}{suffix}"

    def prepare(self) -> None:
        """Make the folder. Raises `UsageError` where it cannot be made, or written to."""
        try:
            pending = self.path / PENDING
            pending.mkdir(parents=True, exist_ok=True)
            _write(pending / ".gitignore", _IGNORED)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise UsageError(f"{self.path} cannot be written: name a folder that is yours")
        except OSError as error:
            shown = error.filename or self.path
            why = f"{error.strerror}; name a folder that can be written"
            raise UsageError(f"{shown} cannot be written: {why}") from error

    def accepted(self, target: str, scenario: str) -> Snapshot | None:
        """The accepted snapshot, None for none. Raises `SnapshotError`."""
        return _read(self.accepted_file(target, scenario))

    def pending(self, target: str, scenario: str) -> Snapshot | None:
        """The pending snapshot, None for none. Raises `SnapshotError`."""
        return _read(self.pending_file(target, scenario))

    def keep_pending(self, snapshot: Snapshot) -> None:
        """Keep a snapshot for review, in place of an earlier one; it is in use."""
        self._used(snapshot.target, snapshot.scenario)
        file = self.pending_file(snapshot.target, snapshot.scenario)
        _write(file, written(snapshot))

    def forget_pending(self, target: str, scenario: str) -> None:
        """Nothing of it waits: it was played, and is as accepted."""
        self._used(target, scenario)
        _remove(self.pending_file(target, scenario), self.path / PENDING)

    def _used(self, target: str, scenario: str) -> None:
        _remove(self.pending_file(target, scenario, UNUSED), self.path / PENDING)

    def note_unused(self, target: str, scenario: str, why: str) -> None:
        """Note that a whole run played no such scenario."""
        _write(self.pending_file(target, scenario, UNUSED), f"{why}\n")

    def accept(self, one: Waiting) -> None:
        """The pending one is the accepted one from now on; an unused one is removed."""
        if one.state is State.UNUSED:
            _remove(self.accepted_file(one.target, one.scenario), self.path)
            _remove(self.pending_file(one.target, one.scenario, UNUSED), self.path / PENDING)
            return
        if one.pending is None:
            raise UsageError(f"{one.name}: {one.problem}; nothing can be accepted")
        _write(self.accepted_file(one.target, one.scenario), written(one.pending))
        self.forget_pending(one.target, one.scenario)

    def reject(self, one: Waiting) -> None:
        """The accepted one stays; of an unused one the note is removed."""
        self.forget_pending(one.target, one.scenario)

    def names(self) -> list[tuple[str, str]]:
        """Target and scenario of each accepted snapshot."""
        return sorted(self._found(self.path, SUFFIX))

    def waiting(self) -> list[Waiting]:
        """Return the snapshots that wait for a decision, and those that cannot be read, by name."""
        pending = set(self._found(self.path / PENDING, SUFFIX))
        unused = set(self._found(self.path / PENDING, UNUSED))
        found: list[Waiting] = []
        for target, scenario in sorted({*pending, *unused, *self.names()}):
            one = self._one(target, scenario, (target, scenario) in unused)
            if one is not None:
                found.append(one)
        return found

    def _one(self, target: str, scenario: str, unused: bool) -> Waiting | None:
        problem, accepted, pending = "", None, None
        try:
            pending = self.pending(target, scenario)
        except SnapshotError as error:
            problem = f"{self.pending_file(target, scenario)}:{error}"
        try:
            accepted = self.accepted(target, scenario)
        except SnapshotError as error:
            problem = f"{self.accepted_file(target, scenario)}:{error}"
            if pending is not None:
                return Waiting(target, scenario, State.CHANGED, None, pending, problem)
        if problem:
            return Waiting(target, scenario, State.DAMAGED, accepted, pending, problem)
        if pending is not None:
            state = State.NEW if accepted is None else State.CHANGED
            return Waiting(target, scenario, state, accepted, pending)
        if unused and accepted is not None:
            note = self.pending_file(target, scenario, UNUSED)
            why = note.read_text("utf-8", "replace").strip()
            return Waiting(target, scenario, State.UNUSED, accepted, None, why)
        return None

    def _found(self, root: Path, suffix: str) -> Iterator[tuple[str, str]]:
        """Give the files of a folder: the first folder is the target, the rest the scenario."""
        for file in root.rglob(f"*{suffix}") if root.is_dir() else ():
            target, *rest = file.relative_to(root).parts
            if rest and target != PENDING:
                yield target, "/".join(rest).removesuffix(suffix)


def _read(file: Path) -> Snapshot | None:
    try:
        return read(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write(file: Path, text: str) -> None:
    """Write a whole file or none."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, "utf-8", "surrogatepass", newline="\n")
        beside.replace(file)
    except BaseException as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        if isinstance(error, OSError):  # A full disk names no file.
            raise OSError(error.errno, error.strerror or str(error), str(file)) from error
        raise


def _remove(file: Path, root: Path) -> None:
    """Remove a file, and the folders that are empty then, up to a folder."""
    file.unlink(missing_ok=True)
    folder = file.parent
    while folder != root and folder.is_relative_to(root):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
