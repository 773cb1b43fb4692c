"""Folders of a run's homes and workspaces, and their removal.

The first run makes `.harness` in the current folder and hides it from git. Homes and workspaces are
below `.harness/run/`, what is kept of the last runs is below `.harness/history/`. If the current
folder is in the system's temporary folder, where a real server refuses to have its home, they are
in a folder of `~/.cache/harness` instead; what is found there to be kept stays where one works. The
next run removes the folders of runs whose process has ended.
"""

import os
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Any, cast

import psutil
import tomlkit

from harness.client.target.process import kill_processes_of
from harness.client.target.profile import Profile, fill
from harness.errors import UsageError

# Where the traces and the report of each run are kept, and of how many runs, the last ones; of
# those with many traces, which take some twenty megabytes each, fewer.
HISTORY, KEPT_RUNS = "history", 12
LARGE, KEPT_LARGE = 50, 6


def base_folder(start: Path | None = None) -> Path:
    """The folder `.harness` for this run, made if needed."""
    here = (start or Path.cwd()).resolve()
    temporary = Path(tempfile.gettempdir()).resolve()
    if here == temporary or here.is_relative_to(temporary):
        # A folder for each current folder: two jobs at the same time must not mix their results.
        mark = zlib.crc32(str(here).encode())
        base = Path.home() / ".cache" / "harness" / f"{here.name or 'tmp'}-{mark:08x}"
    else:
        base = here / ".harness"
    try:
        for folder in (base, base / "reports"):
            folder.mkdir(parents=True, exist_ok=True)
        _keep_out_of_git(base)
    except OSError as error:
        raise UsageError(
            f"{base} cannot be made ({error.strerror}); run in a folder that is yours"
        ) from error
    return base


def failures_folder() -> Path:
    """Return the folder of a fuzzer's failures: `.harness/fuzz`, wherever homes may lie.

    They are to be looked at, played again and committed, so no other folder will do.
    """
    folder = Path(".harness")
    try:
        folder.mkdir(exist_ok=True)
        _keep_out_of_git(folder)
    except OSError as error:
        raise UsageError(
            f"the store {folder}/fuzz cannot be made ({error.strerror}); give another by --store"
        ) from error
    return folder / "fuzz"


def _keep_out_of_git(base: Path) -> None:
    """Write a .gitignore: nothing in here belongs into a repository."""
    ignored = base / ".gitignore"
    if not ignored.exists():
        ignored.write_text("# Made by the harness: all of this can be made again.\n*\n", "utf-8")


def find_kept_file(path: Path) -> Path:
    """The real path of a file that the documents call `.harness/…`, such as `.harness/traces/…`."""
    if path.exists() or path.is_absolute() or path.parts[:1] != (".harness",):
        return path
    elsewhere = base_folder().joinpath(*path.parts[1:])
    return elsewhere if elsewhere.exists() else path


def keep_trace(base: Path, run: str, trace: Path, scenario: str) -> Path:
    """Keep a stored trace for a run of that name; the next run writes over the first place.

    Gives its second place. Both are one file until then, where the file system has links.
    """
    place = base / HISTORY / run / f"{scenario}.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    try:
        os.link(trace, place)
    except OSError:
        shutil.copyfile(trace, place)
    return place


def remove_old_runs(base: Path) -> None:
    """Remove what was kept of all runs but the last, so that small runs crowd out no large one."""
    folder = base / HISTORY
    small: list[Path] = []
    large: list[Path] = []
    for run in sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ():
        is_large = sum(1 for _ in run.rglob("*.jsonl")) > LARGE
        (large if is_large else small).append(run)
    for run in (*small[:-KEPT_RUNS], *large[:-KEPT_LARGE]):
        shutil.rmtree(run, ignore_errors=True)


class RunFolder:
    """The folder of one worker's run. `close` removes it."""

    def __init__(self, base: Path, worker: str) -> None:
        remove_dead_runs(base)
        self.path = base / "run" / f"{os.getpid()}-{worker}"
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        self._count = 0

    def new_folder(self, kind: str) -> Path:
        """A new, empty folder."""
        self._count += 1
        folder = self.path / f"{kind}{self._count}"
        folder.mkdir()
        return folder

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.path, ignore_errors=True)


def write_home_files(home: Path, profile: Profile, values: dict[str, str]) -> None:
    """Write the profile's files into a home."""
    for name, table in profile.home.items():
        content = cast("dict[str, Any]", fill(table, values))
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(tomlkit.dumps(content), encoding="utf-8")  # pyright: ignore[reportUnknownMemberType]


def remove_dead_runs(base: Path, *, dead: str = "") -> None:
    """Remove what runs that died left behind: their folders, and the processes they started.

    `dead` names a worker that is known to have died, even if its process has not ended yet.
    """
    runs = base / "run"
    for folder in runs.glob("*-*") if runs.is_dir() else ():
        pid = folder.name.split("-", 1)[0]
        is_dead_worker = bool(dead) and folder.name == f"{pid}-{dead}"
        if pid.isdigit() and (not _is_running(int(pid)) or (is_dead_worker and _is_ours(int(pid)))):
            kill_processes_of(folder.name)
            shutil.rmtree(folder, ignore_errors=True)


def _is_ours(pid: int) -> bool:
    try:
        return psutil.Process(pid).ppid() == os.getpid()
    except psutil.Error:
        return False


def _is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
