"""Files that a policy allows to read and write, as mounts of bubblewrap.

Commands run under these mounts; patches and images, which the server itself writes and reads, are
checked against the plan (`readable`, `writable`). `sandbox.py` defines the policies, `places.py`
the places of secrets and sockets. The plan changes nothing in the file system.

Why a command cannot escape it:

- mounts are made in the order of their depth, so a protected folder inside a writable one wins;
- every path is resolved first, so that no link leads elsewhere; a root inside another writable root
  is not resolved, since an earlier command could have put a link there;
- bubblewrap resolves the paths again, and another running command may have made a link meanwhile;
  so `warden.py` compares the mounts with the plan (`expected_mounts`) before the command starts;
- a mount point cannot be renamed or removed, but the folders above it can; so each folder between
  a root and a protected path inside it is a separate mount;
- a hard link into a writable root fails, since roots and the rest are different mounts.
"""

import enum
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from reference_server.limits import PATH_LIMIT, check_path
from reference_server.safe_files import open_for_reading
from reference_server.sandbox.places import KERNELS, is_inside, is_kernel_path

REPOSITORY = ".git"


class Refused(Exception):
    """The plan cannot be made safely; str() is a sentence that names the path."""


class Kind(enum.IntEnum):
    """Kinds of mount; of two kinds for one path the greater wins."""

    WRITABLE = 0
    READABLE = 1
    EMPTY = 2
    HIDDEN = 3
    SEARCHABLE = 4


class Plan:
    """Mounts of one command; `notes` are parts of the policy without effect."""

    def __init__(self) -> None:
        self._mounts: dict[str, Kind] = {}
        self._roots: list[str] = []
        self._sources: dict[str, str] = {}
        self._absent: set[str] = set()
        self.notes: list[str] = []

    @property
    def roots(self) -> tuple[str, ...]:
        """The writable folders, resolved."""
        return tuple(self._roots)

    def add(self, path: str, kind: Kind, source: str | None = None) -> None:
        """Plan a mount on an existing path; `source` is the target if the path is a link."""
        if source is not None:
            self._sources[path] = source
        self._mounts[path] = max(kind, self._mounts.get(path, kind))

    def allow(
        self,
        folders: Sequence[str],
        protected: Iterable[str],
        judge: Callable[[str, str], None] = lambda _folder, _real: None,
    ) -> None:
        """Make these folders writable, except the `.git` of each.

        Raises Refused for a folder that must not be writable, such as one in `protected`. `judge`
        is called with each folder and its resolved path, and may raise Refused. A path that is not
        an existing folder is left out with a note: nothing can be written there anyway.
        """
        refused = (*KERNELS, *protected)
        accepted: list[str] = []
        for folder in sorted({_normalize(one) for one in folders}, key=lambda one: one.count("/")):
            if any(is_inside(folder, other) for other in accepted):
                continue
            real = resolve_links(folder)
            if real == "/":
                raise Refused(
                    "the root / would make everything writable; use dangerFullAccess for that"
                )
            for other in refused:
                if is_inside(real, other):
                    raise Refused(f"the root {folder} lies in {other}, which is never writable")
            if not os.path.isdir(real):
                self.notes.append(f"the root {folder} is no folder that exists; it is left out")
                continue
            judge(folder, real)
            accepted += [folder, real]
            if not any(is_inside(real, other) for other in self._roots):
                self._roots.append(real)
                self.add(real, Kind.WRITABLE)
        for root in self.roots:
            for path in _repository(root):
                self.protect(path, Kind.READABLE)

    def readable(self, path: str) -> bool:
        """Return whether a command could read a resolved path."""
        return not is_kernel_path(path) and self._kind(path) <= Kind.READABLE

    def writable(self, path: str) -> bool:
        """Return whether the server may write a resolved path in a patch.

        Stricter than the mounts: protected paths that do not exist yet, and each `.git` deeper
        inside a root, are not writable.
        """
        if is_kernel_path(path) or any(is_inside(path, absent) for absent in self._absent):
            return False
        relative = [path.removeprefix(root) for root in self._roots if is_inside(path, root)]
        in_repository = any(REPOSITORY in Path(rest).parts for rest in relative)
        return self._kind(path) is Kind.WRITABLE and not in_repository

    def _kind(self, path: str) -> Kind:
        """Return the kind of the mount on a path or on its nearest parent; READABLE if none."""
        for parent in (path, *map(str, Path(path).parents)):
            if parent in self._mounts:
                return self._mounts[parent]
        return Kind.READABLE

    def protect(self, path: str, kind: Kind) -> None:
        """Mount on a path and each folder between it and its root, so that none can be moved."""
        self.protect_resolved(resolve_links(path), kind)

    def protect_resolved(self, real: str, kind: Kind) -> None:
        """Do the same for a resolved path; one that does not exist gets no mount."""
        if not os.path.exists(real):
            self._absent.add(real)
            return
        real = resolve_links(real)
        containing_roots = [root for root in self.roots if is_inside(real, root)]
        if kind is Kind.READABLE and (not containing_roots or real in containing_roots):
            return
        for parent in [*map(str, Path(real).parents)][::-1]:
            if not any(is_inside(parent, root) for root in containing_roots):
                continue
            if self._mounts.get(parent, Kind.WRITABLE) > Kind.WRITABLE:
                # Nothing below a read-only mount can be moved, and a mount on a folder in between
                # would make that folder writable again.
                if kind is not Kind.READABLE:
                    self.add(real, kind)
                return
            if parent not in containing_roots:
                self.add(parent, Kind.WRITABLE)
        self.add(real, kind)

    def hides(self, path: str) -> str | None:
        """Return the folder or file that hides a resolved path; None if commands can see it."""
        for parent in (path, *map(str, Path(path).parents)):
            if parent in self._mounts:
                return parent if self._mounts[parent] >= Kind.EMPTY else None
        return None

    def expected_mounts(self) -> tuple[tuple[str, str], ...]:
        """Return the mounts that the command must find, as pairs of path and path of the source.

        The source is empty for a mount that hides a folder.
        """
        return tuple((path, self._source(path, kind)) for path, kind in self._mounts_in_order())

    def _source(self, path: str, kind: Kind) -> str:
        if kind < Kind.EMPTY:
            # Not resolved again: by now a command may have put a link there.
            return self._sources.get(path, path)
        return "" if os.path.isdir(path) else os.devnull

    def _mounts_in_order(self) -> list[tuple[str, Kind]]:
        """Return the mounts, shallow ones first, without those that another mount hides."""
        ordered = sorted(self._mounts.items(), key=lambda mount: mount[0].count("/"))
        return [
            (path, kind)
            for path, kind in ordered
            if kind < Kind.EMPTY or self._kind(str(Path(path).parent)) is not Kind.HIDDEN
        ]

    def arguments(self, *, root: bool) -> list[str]:
        """Return bubblewrap's options for the mounts; `root`: the command runs as root."""
        ordered = self._mounts_in_order()
        result = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for path, kind in ordered:
            result += _mount(path, kind)
        for path, kind in ordered:
            if kind >= Kind.EMPTY and os.path.isdir(path):
                result += ["--remount-ro", path]
        if root:
            # Root may write kernel settings without any capability, so /proc must be read-only;
            # for others it stays writable, since programs adjust themselves there.
            result += ["--remount-ro", "/proc"]
        return result


def resolve_links(path: str) -> str:
    """Return the real path of a path. Raises Refused if the links cannot be followed."""
    try:
        return os.path.realpath(path)
    except OSError as error:
        raise Refused(f"the path {path} cannot be followed: {error.strerror}") from error


def _mount(path: str, kind: Kind) -> list[str]:
    match kind:
        case Kind.WRITABLE:
            return ["--bind", path, path]
        case Kind.READABLE:
            return ["--ro-bind", path, path]
        case _ if not os.path.isdir(path):
            # A device on a mount without devices: opening it is "Permission denied".
            return ["--ro-bind", "/dev/null", path]
        case Kind.EMPTY:
            return ["--perms", "0555", "--tmpfs", path]
        case Kind.SEARCHABLE:
            return ["--perms", "0111", "--tmpfs", path]
        case _:
            return ["--perms", "0000", "--tmpfs", path]


def _normalize(folder: str) -> str:
    if not os.path.isabs(folder):
        raise Refused(f"the root {folder!r} is not an absolute path")
    if "\0" in folder or ".." in Path(folder).parts:
        raise Refused(f"the root {folder!r} holds `..` or a NUL character")
    # normpath keeps two leading slashes, which POSIX allows to differ; on Linux they mean one.
    return "/" + os.path.normpath(folder).lstrip("/")


def _repository(root: str) -> Iterator[str]:
    """Yield the `.git` of a root, which may not exist, and the folders that it refers to."""
    path = Path(root, REPOSITORY)
    yield str(path)
    try:
        folder = _read_pointer(path).removeprefix("gitdir:").strip()
        yield str(path.parent / folder)
        common = path.parent / folder / "commondir"
        yield str(common.parent / _read_pointer(common))
    except (OSError, ValueError):
        return


def _read_pointer(path: Path) -> str:
    """Return the path in a file that a command may have written. Raises OSError, ValueError."""
    with open_for_reading(path) as file:
        text = file.read(PATH_LIMIT).decode().strip()
    check_path(text)
    if "\0" in text:
        raise ValueError("no path holds a NUL character")
    return text
