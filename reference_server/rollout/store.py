"""Rollout files of a home: paths and search.

The files are `sessions/YYYY/MM/DD/rollout-<timestamp>-<thread id>.jsonl`, archived ones below
`archived_sessions`. `reader` reads them.

A home may hold tens of thousands of rollouts, so the listing of a folder is cached until the folder
changes. Other servers of the home may add, move and remove rollouts at any time.
"""

import logging
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from reference_server.config.home import Home
from reference_server.ids import NUMBER, Counters, is_thread_id
from reference_server.safe_files import lines_of, open_for_reading

_log = logging.getLogger(__name__)

_SUFFIX = ".jsonl"
_FILE = re.compile(f"rollout-.*-(thr_({NUMBER}))\\.jsonl")
_TURN = re.compile(f'"turnId":"turn_({NUMBER})"'.encode())

MAX_KEPT_PATHS = 4000
"""Paths of the threads used last, which are kept; others are found in the listings again."""
_DEPTH = 3
"""Depth of folders (year, month, day), a limit because links to folders may form a cycle."""
_SETTLED_NS = 2_000_000_000
"""Nanoseconds. A folder that changed less than this before it was read may change again without a
new modification time, since clocks of file systems are coarse."""


def thread_id_of(path: Path) -> str | None:
    """Return the thread id in a rollout's file name; None for another name."""
    match = _FILE.fullmatch(path.name)
    return None if match is None else match[1]


class RolloutStore:
    """Rollout files of one home. May be used from several threads."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = Lock()
        self._folders: dict[str, _Folder] = {}
        self._paths: dict[str, str] = {}

    def new_path(self, thread_id: str, timestamp: float) -> Path:
        """Return the path for a new thread; `timestamp` in seconds since 1970, UTC in the name."""
        when = datetime.fromtimestamp(timestamp, UTC)
        name = f"rollout-{when:%Y-%m-%dT%H-%M-%S}-{thread_id}.jsonl"
        return self._home.sessions / f"{when:%Y/%m/%d}" / name

    def find(self, thread_id: str) -> Path | None:
        """Return a thread's file, archived or not; None if it has none. Blocks. Raises OSError."""
        if not is_thread_id(thread_id):
            return None
        with self._lock:
            path = self._paths.pop(thread_id, "")
            if not path or not os.path.lexists(path):
                path = self._search(thread_id)
            if path:
                self._paths[thread_id] = path
                if len(self._paths) > MAX_KEPT_PATHS:
                    del self._paths[next(iter(self._paths))]
            return Path(path) if path else None

    def _search(self, thread_id: str) -> str:
        """List the folders that have changed, and search all for the thread's file; "" for none."""
        earlier, self._folders = self._folders, {}
        for root in (self._home.sessions, self._home.archived_sessions):
            paths = [
                os.path.join(path, name)
                for path, folder in self._rollouts(str(root), earlier)
                if (name := folder.name_of(thread_id))
            ]
            if paths:
                # Keep the cached listings of folders that were not searched.
                self._folders = earlier | self._folders
                return min(paths)
        return ""

    def _rollouts(
        self, path: str, folders: "dict[str, _Folder]", depth: int = _DEPTH
    ) -> "Iterator[tuple[str, _Folder]]":
        """Yield each folder at or below a path that holds rollouts, with its path."""
        try:
            changed_ns = os.stat(path).st_mtime_ns
            folder = folders.get(path)
            if folder is None or folder.changed_ns != changed_ns:
                settled = abs(time.time_ns() - changed_ns) > _SETTLED_NS
                folder = _scan_folder(path, changed_ns if settled else None)
        except (FileNotFoundError, NotADirectoryError):
            return
        self._folders[path] = folder
        if folder.names:
            yield path, folder
        for name in folder.folders if depth else ():
            yield from self._rollouts(os.path.join(path, name), folders, depth - 1)

    def highest_ids(self) -> Counters:
        """Return the highest thread and turn numbers in all rollouts, archived ones too. Slow."""
        threads = turns = 0
        for path in self._all():
            if match := _FILE.fullmatch(path.name):
                threads = max(threads, int(match[2]))
            try:
                with open_for_reading(path) as lines:
                    for line in lines_of(lines):
                        turns = max(turns, *map(int, _TURN.findall(line)), 0)
            except OSError as error:
                _log.warning("%s: not searched for turn ids: %s", path, error.strerror)
        return Counters(threads, turns)

    def _all(self) -> Iterator[Path]:
        for root in (self._home.sessions, self._home.archived_sessions):
            yield from root.rglob("rollout-*.jsonl")


@dataclass(slots=True)
class _Folder:
    """Listing of a folder and its modification time, None if a later change may have the same.

    `names` are the sorted names of rollouts, each with a line feed at its end: a home may hold many
    thousands, and one text takes less memory than a dict of them.
    """

    changed_ns: int | None
    folders: list[str] = field(default_factory=list[str])
    names: str = ""

    def name_of(self, thread_id: str) -> str:
        """Return the first name of a thread's rollout, "" if there is none."""
        end = self.names.find(f"-{thread_id}{_SUFFIX}\n")
        if end < 0:
            return ""
        return self.names[self.names.rfind("\n", 0, end) + 1 : self.names.find("\n", end)]


def _scan_folder(path: str, changed_ns: int | None) -> _Folder:
    folder = _Folder(changed_ns)
    names: list[str] = []
    with os.scandir(path) as entries:
        for entry in entries:
            if _FILE.fullmatch(entry.name):
                names.append(f"{entry.name}\n")
            elif entry.is_dir():
                folder.folders.append(entry.name)
    folder.names = "".join(sorted(names))
    return folder
