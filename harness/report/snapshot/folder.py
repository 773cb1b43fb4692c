"""The folder of a user's snapshots: accepted, pending and unused ones.

    DIR/.gitattributes                              keeps the line ends of checkouts as written
    DIR/<target>/<scenario>.transcript              accepted: belongs into the repository
    DIR/.pending/<target>/<scenario>.transcript     the different transcript of a run
    DIR/.pending/<target>/<scenario>.unused         no whole run plays it: the reason in one line

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
from harness.report.snapshot.files import Snapshot, SnapshotError, format_snapshot, parse_snapshot

SUFFIX, UNUSED = ".transcript", ".unused"
PENDING = ".pending"
ATTRIBUTES = ".gitattributes"
_LINE_ENDS = f"*{SUFFIX} text eol=lf\n"
_IGNORED = "# Made by harness: what waits for `harness snapshots review`.\n*\n"


class State(StrEnum):
    """States of a snapshot that waits for a decision."""

    NEW = "new"
    CHANGED = "changed"
    UNUSED = "unused"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class WaitingSnapshot:
    """A snapshot that waits for a decision, with its accepted and pending versions.

    `problem` is why a file of it cannot be read, or why it is unused.
    """

    target: str
    scenario: str
    state: State
    accepted_snapshot: Snapshot | None = None
    pending_snapshot: Snapshot | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """The target and the scenario."""
        return f"{self.target}/{self.scenario}"


class SnapshotFolder:
    """One folder of snapshots. All methods raise `OSError` if the disk fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def accepted_file(self, target: str, scenario: str) -> Path:
        """Return the path of an accepted snapshot."""
        return self.path / target / f"{scenario}{SUFFIX}"

    def pending_file(self, target: str, scenario: str, suffix: str = SUFFIX) -> Path:
        """Return the path of a pending snapshot, or with `UNUSED` of the note that it is unused."""
        return self.path / PENDING / target / f"{scenario}{suffix}"

    def prepare(self) -> None:
        """Make the folder. Raises `UsageError` if it cannot be made, or written to."""
        try:
            pending = self.path / PENDING
            pending.mkdir(parents=True, exist_ok=True)
            _write(pending / ".gitignore", _IGNORED)
            if not (self.path / ATTRIBUTES).exists():
                _write(self.path / ATTRIBUTES, _LINE_ENDS)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise UsageError(f"{self.path} cannot be written: name a folder that is yours")
        except OSError as error:
            path = error.filename or self.path
            reason = f"{error.strerror}; name a folder that can be written"
            raise UsageError(f"{path} cannot be written: {reason}") from error

    def load_accepted(self, target: str, scenario: str) -> Snapshot | None:
        """Return the accepted snapshot, None without one. Raises `SnapshotError` if damaged."""
        return _read(self.accepted_file(target, scenario))

    def load_pending(self, target: str, scenario: str) -> Snapshot | None:
        """Return the pending snapshot, None without one. Raises `SnapshotError` if damaged."""
        return _read(self.pending_file(target, scenario))

    def keep_pending(self, snapshot: Snapshot) -> None:
        """Store a snapshot for review, in place of an earlier one, and mark it as used."""
        self._mark_used(snapshot.target, snapshot.scenario)
        file = self.pending_file(snapshot.target, snapshot.scenario)
        _write(file, format_snapshot(snapshot))

    def forget_pending(self, target: str, scenario: str) -> None:
        """Remove a pending snapshot whose scenario was played as accepted."""
        self._mark_used(target, scenario)
        _remove(self.pending_file(target, scenario), self.path / PENDING)

    def _mark_used(self, target: str, scenario: str) -> None:
        _remove(self.pending_file(target, scenario, UNUSED), self.path / PENDING)

    def note_unused(self, target: str, scenario: str, reason: str) -> None:
        """Note why no whole run plays the scenario of a snapshot."""
        _write(self.pending_file(target, scenario, UNUSED), f"{reason}\n")

    def accept(self, snapshot: WaitingSnapshot) -> None:
        """Make the pending version the accepted one; remove an unused snapshot.

        Raises `UsageError` if there is no pending version that can be read.
        """
        if snapshot.state is State.UNUSED:
            _remove(self.accepted_file(snapshot.target, snapshot.scenario), self.path)
            _remove(
                self.pending_file(snapshot.target, snapshot.scenario, UNUSED), self.path / PENDING
            )
            return
        if snapshot.pending_snapshot is None:
            raise UsageError(f"{snapshot.name}: {snapshot.problem}; nothing can be accepted")
        _write(
            self.accepted_file(snapshot.target, snapshot.scenario),
            format_snapshot(snapshot.pending_snapshot),
        )
        self.forget_pending(snapshot.target, snapshot.scenario)

    def reject(self, snapshot: WaitingSnapshot) -> None:
        """Remove the pending version, or the note that the snapshot is unused."""
        self.forget_pending(snapshot.target, snapshot.scenario)

    def accepted_names(self) -> list[tuple[str, str]]:
        """Return target and scenario of each accepted snapshot."""
        return sorted(self._find_files(self.path, SUFFIX))

    def waiting_snapshots(self) -> list[WaitingSnapshot]:
        """Return the snapshots that wait for a decision, and unreadable ones, by name."""
        pending = set(self._find_files(self.path / PENDING, SUFFIX))
        unused = set(self._find_files(self.path / PENDING, UNUSED))
        snapshots: list[WaitingSnapshot] = []
        for target, scenario in sorted({*pending, *unused, *self.accepted_names()}):
            snapshot = self._waiting_snapshot(target, scenario, (target, scenario) in unused)
            if snapshot is not None:
                snapshots.append(snapshot)
        return snapshots

    def _waiting_snapshot(self, target: str, scenario: str, unused: bool) -> WaitingSnapshot | None:
        problem, accepted, pending = "", None, None
        try:
            pending = self.load_pending(target, scenario)
        except SnapshotError as error:
            problem = f"{self.pending_file(target, scenario)}:{error}"
        try:
            accepted = self.load_accepted(target, scenario)
        except SnapshotError as error:
            problem = f"{self.accepted_file(target, scenario)}:{error}"
            if pending is not None:
                return WaitingSnapshot(target, scenario, State.CHANGED, None, pending, problem)
        if problem:
            return WaitingSnapshot(target, scenario, State.DAMAGED, accepted, pending, problem)
        if pending is not None:
            state = State.NEW if accepted is None else State.CHANGED
            return WaitingSnapshot(target, scenario, state, accepted, pending)
        if unused and accepted is not None:
            note = self.pending_file(target, scenario, UNUSED)
            reason = note.read_text("utf-8", "replace").strip()
            return WaitingSnapshot(target, scenario, State.UNUSED, accepted, None, reason)
        return None

    def _find_files(self, root: Path, suffix: str) -> Iterator[tuple[str, str]]:
        """Yield target and scenario of each file below `root` that ends in `suffix`."""
        for file in root.rglob(f"*{suffix}") if root.is_dir() else ():
            target, *parts = file.relative_to(root).parts
            if parts and target != PENDING:
                yield target, "/".join(parts).removesuffix(suffix)


def _read(file: Path) -> Snapshot | None:
    try:
        return parse_snapshot(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write(file: Path, text: str) -> None:
    """Write a file atomically; create its folder."""
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
    """Remove a file, and its empty parent folders up to `root`."""
    file.unlink(missing_ok=True)
    folder = file.parent
    while folder != root and folder.is_relative_to(root):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
