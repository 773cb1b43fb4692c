"""What a policy that confines lets be read and written, as bubblewrap mounts.

Here lives the plan: which paths are writable, protected or hidden, and in which order that is
mounted. Commands get it as mounts; patches and images, which the server itself writes and reads,
ask it (`readable`, `writable`). Which policy asks for what is `sandbox.py`. The plan only looks at
the file system.

How it holds:

- mounts are made in the order of their depth, so a protected folder inside a writable one wins;
- every path is resolved first, so a link leads nowhere else; a root that lies inside another
  writable root is not looked at, since an earlier command could have put a link there;
- a mount point cannot be renamed or removed, but the folders above it can; so each folder between
  a root and what is protected inside it is a mount of its own;
- a hard link into a writable root fails by itself: roots and rest are different mounts.
"""

import enum
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from reference_server.bounds import PATH_LIMIT, check_path
from reference_server.regular import opened

SECRETS = (
    ".ssh",
    ".aws",
    ".gnupg",
    ".azure",
    ".kube",
    ".password-store",
    ".vault-token",
    ".docker/config.json",
    ".docker/run",
    ".docker/desktop",
    ".config/gcloud",
    ".config/gh",
    ".config/sops",
    ".local/share/keyrings",
    ".git-credentials",
    ".config/git/credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
)
"""Of the user's home: what no confined command reads, and where Docker listens."""
SOCKETS = (".X11-unix", ".ICE-unix", "screens", "tmux-{user}")
"""In the temporary folder: where programs listen that would do things outside for a command.

Only such as stay there: a mount on a folder that has just gone fails.
"""
RUN_KEPT = (
    "current-system",
    "wrappers",
    "opengl-driver",
    "systemd/resolve",
    "NetworkManager/resolv.conf",
    "resolvconf",
)
"""In /run, otherwise hidden as a place of sockets: programs of some systems, and name servers."""
KERNELS = ("/proc", "/sys", "/dev")
"""What is no disk: never a root, and never read or written by the server for a model."""
REPOSITORY = ".git"


class Refused(Exception):
    """No mounts can give this; str() is a sentence that names the path."""


class Kind(enum.IntEnum):
    """What is mounted on a path; of two for one path the greater wins."""

    WRITABLE = 0
    READABLE = 1
    EMPTY = 2
    HIDDEN = 3
    SEARCHABLE = 4


def of_kernel(path: str) -> bool:
    """Whether a resolved path is in a file system that the kernel makes up."""
    return any(inside(path, kernel) for kernel in KERNELS)


def inside(path: str, folder: str) -> bool:
    """Whether a normalised path is that folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Plan:
    """The mounts of one command."""

    def __init__(self) -> None:
        self._mounts: dict[str, Kind] = {}
        self._roots: list[str] = []
        self._absent: set[str] = set()
        self.notes: list[str] = []

    @property
    def roots(self) -> tuple[str, ...]:
        """The writable folders, resolved."""
        return tuple(self._roots)

    def add(self, path: str, kind: Kind) -> None:
        """Mount on a resolved path that exists."""
        self._mounts[path] = max(kind, self._mounts.get(path, kind))

    def allow(self, folders: Sequence[str], protected: Iterable[str]) -> None:
        """Make these folders writable. Raises Refused where one cannot or must not be.

        One that does not exist, or is no folder, is left out with a note: nothing can be written
        there anyway.
        """
        refused = (*KERNELS, *protected)
        accepted: list[str] = []
        for folder in sorted({_normal(one) for one in folders}, key=lambda one: one.count("/")):
            if any(inside(folder, other) for other in accepted):
                continue
            real = os.path.realpath(folder)
            if real == "/":
                raise Refused("the root / would make everything writable; dangerFullAccess says so")
            for other in refused:
                if inside(real, other):
                    raise Refused(f"the root {folder} lies in {other}, which is never writable")
            if not os.path.isdir(real):
                self.notes.append(f"the root {folder} is no folder that exists; it is left out")
                continue
            accepted += [folder, real]
            if not any(inside(real, other) for other in self._roots):
                self._roots.append(real)
                self.add(real, Kind.WRITABLE)
        for root in self.roots:
            for path in _repository(root):
                self.protect(path, Kind.READABLE)

    def readable(self, path: str) -> bool:
        """Whether a resolved path can be read, as a command would find it."""
        return not of_kernel(path) and self._kind(path) <= Kind.READABLE

    def writable(self, path: str) -> bool:
        """Whether a resolved path can be written.

        More is protected here than mounts can: also what does not exist yet, and the repositories
        within a root.
        """
        if of_kernel(path) or any(inside(path, absent) for absent in self._absent):
            return False
        below = [path.removeprefix(root) for root in self._roots if inside(path, root)]
        in_repository = any(REPOSITORY in Path(rest).parts for rest in below)
        return self._kind(path) is Kind.WRITABLE and not in_repository

    def _kind(self, path: str) -> Kind:
        """What is mounted on a path, or on the nearest folder above it."""
        for above in (path, *map(str, Path(path).parents)):
            if above in self._mounts:
                return self._mounts[above]
        return Kind.READABLE

    def protect(self, path: str, kind: Kind) -> None:
        """Mount on a path, and hold the folders between it and the root that it is in."""
        real = os.path.realpath(path)
        if not os.path.exists(real):
            self._absent.add(real)
            return
        within = [root for root in self.roots if inside(real, root)]
        if kind is Kind.READABLE and not within:
            return
        self.add(real, kind)
        for root in within:
            for above in Path(real).parents:
                if inside(str(above), root) and str(above) != root:
                    self.add(str(above), Kind.WRITABLE)

    def arguments(self, *, root: bool) -> list[str]:
        """The options of bubblewrap, shallow mounts first; `root`: for a command run by root."""
        ordered = sorted(self._mounts.items(), key=lambda mount: mount[0].count("/"))
        result = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for path, kind in ordered:
            result += _mount(path, kind)
        for path, kind in ordered:
            if kind >= Kind.EMPTY and os.path.isdir(path):
                result += ["--remount-ro", path]
        if root:
            # Root may write kernel settings without any capability, so nothing there may be
            # writable; for others it stays as it is, since programs adjust themselves there.
            result += ["--remount-ro", "/proc"]
        return result


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


def _normal(folder: str) -> str:
    if not os.path.isabs(folder):
        raise Refused(f"the root {folder!r} is not an absolute path")
    if "\0" in folder or ".." in Path(folder).parts:
        raise Refused(f"the root {folder!r} holds `..` or a NUL character")
    # POSIX lets two leading slashes mean something else; here they do not.
    return "/" + os.path.normpath(folder).lstrip("/")


def _repository(root: str) -> Iterator[str]:
    """The `.git` of a root, and the folders that it refers to."""
    path = Path(root, REPOSITORY)
    yield str(path)
    try:
        folder = _pointed_to(path).removeprefix("gitdir:").strip()
        yield str(path.parent / folder)
        common = path.parent / folder / "commondir"
        yield str(common.parent / _pointed_to(common))
    except (OSError, ValueError):
        return


def _pointed_to(path: Path) -> str:
    """The path that a file holds; it is a command's to write. Raises OSError, ValueError."""
    with opened(path) as file:
        text = file.read(PATH_LIMIT).decode().strip()
    check_path(text)
    return text


def secrets_of(home: str) -> set[str]:
    """The secrets of a user's home, resolved, whether they exist or not."""
    return {os.path.realpath(os.path.join(home, name)) for name in SECRETS}


def places_of_sockets(temporary: str = "/tmp") -> Iterator[str]:
    """Folders with sockets of programs outside; /run is the first."""
    for path in ("/run", "/var/run"):
        if os.path.isdir(path):
            yield os.path.realpath(path)
    for name in SOCKETS:
        path = os.path.join(temporary, name.format(user=os.getuid()))
        if os.path.isdir(path) and not os.path.islink(path):
            yield path


def sockets_named_by(environment: Mapping[str, str]) -> Iterator[str]:
    """Sockets that the environment leads to: of the ssh agent, tmux, the message bus, Docker."""
    bus = environment.get("DBUS_SESSION_BUS_ADDRESS", "").partition("unix:path=")[2]
    named = (
        environment.get("SSH_AUTH_SOCK", ""),
        environment.get("TMUX", "").partition(",")[0],
        bus.partition(",")[0],
        environment.get("DOCKER_HOST", "").removeprefix("unix://"),
    )
    for path in named:
        if os.path.isabs(path) and os.path.exists(path) and not os.path.isdir(path):
            yield os.path.realpath(path)


def kept_of_run() -> Iterator[str]:
    """What of /run stays to be seen."""
    for name in RUN_KEPT:
        path = os.path.join("/run", name)
        if os.path.exists(path):
            yield path
