"""Contents of a folder at one moment, and a folder made of them.

A kill leaves the files as they are. So the state in which a stopped process is on the disk is the
state in which a kill at that moment would leave it, hard links included.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or symbolic link; `content` is None for a folder."""

    mode: int
    inode: int
    times: tuple[int, int]
    content: bytes | None


State = dict[str, Entry]
"""By path relative to the folder, each folder before its contents."""


def read_state(folder: Path) -> State:
    """Return the state of all that is in a folder."""
    state: State = {}
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for one in found:
                status = one.stat(follow_symlinks=False)
                content = None
                if one.is_symlink():
                    content = os.fsencode(os.readlink(one.path))
                elif one.is_dir(follow_symlinks=False):
                    waiting.append(one.path)
                else:
                    # An empty file may have no permissions.
                    content = Path(one.path).read_bytes() if status.st_size else b""
                times = (status.st_atime_ns, status.st_mtime_ns)
                path = os.path.relpath(one.path, folder)
                state[path] = Entry(status.st_mode, status.st_ino, times, content)
    return state


def write_state(state: State, folder: Path) -> None:
    """Make a folder with this state, which must not exist."""
    folder.mkdir()
    made: dict[int, str] = {}
    for name, entry in state.items():
        path = os.path.join(folder, name)
        if entry.content is None:
            os.mkdir(path)
        elif stat.S_ISLNK(entry.mode):
            os.symlink(entry.content, path)
        elif entry.inode in made:
            os.link(made[entry.inode], path)
        else:
            made[entry.inode] = path
            Path(path).write_bytes(entry.content)
    # Making an entry changes the time of its folder, so the innermost come first.
    for name, entry in reversed(state.items()):
        path = os.path.join(folder, name)
        if not stat.S_ISLNK(entry.mode):
            os.chmod(path, stat.S_IMODE(entry.mode))
            os.utime(path, ns=entry.times)


def contents(state: State) -> dict[str, tuple[int, bytes | None, list[str]]]:
    """Return what a program could see of a state: modes, contents, names of the same file."""
    names: dict[int, list[str]] = {}
    for name, entry in sorted(state.items()):
        names.setdefault(entry.inode, []).append(name)
    return {name: (one.mode, one.content, names[one.inode]) for name, one in state.items()}
