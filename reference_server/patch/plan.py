"""Plan of a patch: the new content of every file, without writing anything.

Our choices: adding an existing file replaces it, as in the real servers (models rewrite files in
this way), and is shown as added; moving onto another file is refused, since clients would not see
that this file is lost; a file named twice is refused; a deleted file may be binary. Folders in a
path may be links, and the plan has their real paths; a file that is a link itself is refused.
Callers decide which paths may not be read (`Forbids`, called before a file is opened, and again
with the open file, since names may lead elsewhere by then).
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from reference_server.patch.files import FileContent, Forbids, read_in_place
from reference_server.patch.match import apply_hunks, is_text
from reference_server.patch.parse import AddFile, DeleteFile, FilePatch, Patch, PatchError

MAX_CONTENT_BYTES = 32 * 2**20
"""Maximum bytes of the old and new contents of a patch: all are in memory until it is applied."""
MAX_FOLDERS = 256
"""Maximum folders above a file; each stays open until the patch is applied."""


@dataclass(frozen=True, slots=True)
class Place:
    """Path of a file: as in the patch, absolute, and absolute with links to folders resolved."""

    patch_path: str
    path: str
    real: str


@dataclass(frozen=True, slots=True)
class Write:
    """Change of one path on disk: its content before and after, None for no file.

    `mode` (permission bits) and `owner` are those of the file, or of the file that moves there;
    None for a new file.
    """

    real: str
    before: bytes | None
    after: bytes | None
    mode: int | None
    owner: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one file of the patch. `path` and `moved_to` are absolute."""

    kind: Literal["add", "delete", "update"]
    place: Place
    moved_place: Place | None
    before: bytes | None
    after: bytes | None
    mode: int | None
    owner: tuple[int, int] | None

    @property
    def path(self) -> str:
        """The path for clients."""
        return self.place.path

    @property
    def moved_to(self) -> str | None:
        """The path to which the file moves; None if it does not move."""
        return self.moved_place.path if self.moved_place else None

    def writes(self) -> Iterator[Write]:
        """Yield the writes of the change, one for each path."""
        if self.moved_place is None:
            yield Write(self.place.real, self.before, self.after, self.mode, self.owner)
        else:
            yield Write(self.moved_place.real, None, self.after, self.mode, self.owner)
            yield Write(self.place.real, self.before, None, self.mode, self.owner)


@dataclass(frozen=True, slots=True)
class Plan:
    """All changes of a patch, sorted by path."""

    changes: tuple[Change, ...]

    @property
    def paths(self) -> list[str]:
        """Every path on disk that changes: resolved, absolute, sorted."""
        return sorted(write.real for write in self.writes())

    @property
    def summary(self) -> str:
        """The output for the model: per file `A`, `M` or `D`, and the path as in the patch."""
        lines = ["Success. Updated the following files:"]
        for mark, kind in (("A", "add"), ("M", "update"), ("D", "delete")):
            lines += [
                f"{mark} {(change.moved_place or change.place).patch_path}"
                for change in self.changes
                if change.kind == kind
            ]
        return "\n".join(lines) + "\n"

    def writes(self) -> list[Write]:
        """Return all writes, deletions last."""
        every = [write for change in self.changes for write in change.writes()]
        return sorted(every, key=lambda write: write.after is None)


def make_plan(
    patch: Patch, cwd: str | os.PathLike[str], forbids: Forbids = lambda _real, _status: None
) -> Plan:
    """Read the files and return the plan with their new contents; relative paths start at `cwd`.

    Raises PatchError. Nothing is written.
    """
    places: dict[str, Place] = {}
    changes: list[Change] = []
    size = 0
    for file in patch.files:
        change = _Planning(file, os.path.abspath(cwd), forbids).change()
        for place in (change.place, change.moved_place):
            if place is None:
                continue
            if place.real in places:
                twice = f"{place.patch_path} is named twice in the patch"
                words = f"{twice}; put all hunks under one header"
                raise PatchError(words, file.line)
            places[place.real] = place
        changes.append(change)
        size += len(change.before or b"") + len(change.after or b"")
        if size > MAX_CONTENT_BYTES:
            limit = f"{MAX_CONTENT_BYTES // 2**20} MiB, before and after"
            words = f"the files together have more than {limit}; change fewer of them in one patch"
            raise PatchError(words, file.line)
    for real, place in places.items():
        for parent in _parents(real):
            if parent in places:
                words = f"{places[parent].patch_path} and {place.patch_path} cannot be in one patch"
                raise PatchError(f"{words}: one is a folder of the other")
    return Plan(tuple(sorted(changes, key=lambda change: change.path)))


class _Planning:
    """Planning of one section of a patch, with the file on disk."""

    def __init__(self, file: FilePatch, cwd: str, forbids: Forbids) -> None:
        self._file = file
        self._cwd = cwd
        self._forbids = forbids

    def change(self) -> Change:
        """Return the section's change. Raises PatchError."""
        file = self._file
        place = self._place(file.path)
        current = self._read(place)
        mode, owner = (current.mode, current.owner) if current else (None, None)
        before = current.content if current else None
        if isinstance(file, AddFile):
            self._check_folder(place)
            self._check_writable(place, current)
            after = file.content.encode()
            return Change("add", place, None, before, after, mode, owner)
        if current is None:
            verb = "deleted" if isinstance(file, DeleteFile) else "updated"
            todo = "check the path" if verb == "deleted" else "check the path, or use Add File"
            raise self._error(place, f"does not exist, so it cannot be {verb}; {todo}")
        if isinstance(file, DeleteFile):
            return Change("delete", place, None, before, None, mode, owner)
        self._check_writable(place, current)
        moved_place = self._moved_place(file.move_to, place)
        if file.hunks and not is_text(current.content):
            raise self._error(place, "is not UTF-8 text; a patch can only add, move or delete it")
        content = current.content
        after = apply_hunks(content, file.hunks, place.patch_path) if file.hunks else content
        return Change("update", place, moved_place, before, after, mode, owner)

    def _moved_place(self, path: str | None, source: Place) -> Place | None:
        if path is None:
            return None
        place = self._place(path)
        if place.real == source.real:
            return None
        self._check_folder(place)
        if self._read(place) is not None:
            raise self._error(place, "exists already; delete it first, or move to another path")
        return place

    def _place(self, patch_path: str) -> Place:
        joined = os.path.join(self._cwd, patch_path)
        head, tail = os.path.split(joined)
        if tail in ("", ".", ".."):
            raise PatchError(f"{patch_path} names a folder; a patch changes files", self._file.line)
        # Resolved as by the system: `link/..` is the parent of the link's target.
        real = os.path.join(self._resolve(head), tail)
        if real.count("/") > MAX_FOLDERS:
            brief = patch_path if len(patch_path) <= 80 else f"{patch_path[:80]}..."
            words = f"{brief} lies too deep (in more than {MAX_FOLDERS} folders)"
            raise PatchError(words, self._file.line)
        if reason := self._forbids(real, None):
            raise PatchError(f"{patch_path}: {reason}", self._file.line)
        path = os.path.normpath(joined)
        same = os.path.join(self._resolve(os.path.dirname(path)), tail) == real
        return Place(patch_path, path if same else real, real)

    def _resolve(self, folder: str) -> str:
        try:
            return os.path.realpath(folder)
        except OSError as error:
            # A link was removed while it was being resolved.
            raise PatchError(f"{folder}: {error.strerror}; try again", self._file.line) from None

    def _read(self, place: Place) -> FileContent | None:
        try:
            return read_in_place(place.real, self._forbids)
        except OSError as error:
            raise self._error(place, error.strerror or str(error)) from None

    def _check_folder(self, place: Place) -> None:
        for parent in _parents(place.real):
            try:
                status = os.stat(parent, follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise self._error(place, error.strerror or str(error)) from None
            if not stat.S_ISDIR(status.st_mode):
                raise self._error(place, f"cannot be made: {parent} is a file, not a folder")
            return

    def _check_writable(self, place: Place, current: FileContent | None) -> None:
        # Replacing a file needs only permissions of its folder, so its own are checked here.
        if current is not None and not os.access(place.real, os.W_OK):
            raise self._error(place, "is read-only")

    def _error(self, place: Place, words: str) -> PatchError:
        return PatchError(f"{place.patch_path}: {words}", self._file.line)


def _parents(path: str) -> Iterator[str]:
    while (parent := os.path.dirname(path)) != path:
        yield parent
        path = parent
