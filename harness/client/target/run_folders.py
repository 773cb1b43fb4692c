"""Folders of a run's homes and workspaces, and their removal.

The first run makes `.harness` in the current folder and hides it from git. Homes and workspaces are
below `.harness/run/`, the history of the last runs is below `.harness/history/`. If the current
folder is in the system's temporary folder, where a real server refuses to have its home, or cannot
be written, they are in a folder of `~/.cache/harness` instead. `--dir` names another folder. The
next run removes the folders of runs whose process has ended.
"""

import contextlib
import os
import shutil
import tempfile
import zlib
from pathlib import Path

import psutil

from harness.client.target.process_tree import NO_ANSWER, is_running, kill_processes_of
from harness.client.target.profile import Profile, fill
from harness.client.target.settings_files import file_text
from harness.errors import UsageError
from harness.protocol.escapes import is_utf8, visible

FOLDER_VARIABLE = "HARNESS_DIR"
"""The environment variable of `--dir`, which workers inherit."""

# Bytes written to try a folder: on a full disk an empty file can still be made.
_PROBE_BYTES = 64 * 1024
# The folder of the traces and reports of past runs, and how many runs are kept. Fewer large runs
# are kept: they take some twenty megabytes each.
HISTORY, MAX_SMALL_RUNS_KEPT = "history", 12
LARGE_RUN_TRACES, MAX_LARGE_RUNS_KEPT = 50, 6


def base_folder(start: Path | None = None) -> Path:
    """Return the folder of a run in `start` (None: the current folder), made if needed.

    It is the one of `--dir`, else `.harness`, else one in `~/.cache/harness`. Raises `UsageError`
    if none of them can be written.
    """
    return _find_writable(start)[0]


def folder_note() -> str:
    """Return why the folder is not `.harness` although it should be, "" if it is."""
    base, problems = _find_writable()
    return f"{'; '.join(problems)}; {base} is used instead (--dir names another)" * bool(problems)


def recorded_folder() -> Path:
    """Return the folder with the recorded runs, which need not be writable.

    Without any recorded run, the folder of a new run. Raises `UsageError` if there is no current
    folder.
    """
    folders = _candidates()
    with contextlib.suppress(UsageError):
        folders = [base_folder(), *folders]
    recorded = (
        base for base in folders if any((base / name).is_dir() for name in (HISTORY, "traces"))
    )
    return next(recorded, folders[0])


def _find_writable(start: Path | None = None) -> tuple[Path, list[str]]:
    """Return the first writable folder and the problems of those before; `UsageError` if none."""
    problems: list[str] = []
    for base in _candidates(start):
        problem = _write_problem(base)
        if not problem:
            return base, problems
        problems.append(visible(f"{base} {problem}"))
    raise UsageError(f"{'; '.join(problems)}; name a folder that can be written by --dir")


def _candidates(start: Path | None = None) -> list[Path]:
    """Return the folders that a run may have, the best first."""
    try:
        current = (start or Path.cwd()).resolve()
    except OSError as error:
        raise UsageError("the current folder was removed; change to another") from error
    if given := os.environ.get(FOLDER_VARIABLE):
        return [(current / given).resolve()]
    # A folder for each current folder: two jobs at the same time must not mix their results.
    mark = zlib.crc32(os.fsencode(current))
    name = os.fsencode(current.name).decode("utf-8", "replace").replace("\ufffd", "_") or "tmp"
    cached = Path("~/.cache/harness").expanduser() / f"{name}-{mark:08x}"
    temporary = _temporary_folder()
    if temporary is not None and current.is_relative_to(temporary):
        return [cached]
    return [current / ".harness", cached]


def _temporary_folder() -> Path | None:
    try:
        return Path(tempfile.gettempdir()).resolve()
    except OSError:  # None can be written.
        return None


def _write_problem(base: Path) -> str:
    """Return why a run cannot use a folder, "" if it can; make it if needed."""
    if not is_utf8(str(base)):
        return "has a name that is not UTF-8, which no message can hold"
    try:
        is_ours = base.name == ".harness" or not base.is_dir() or not any(base.iterdir())
        for folder in (base, base / "reports", base / "run"):
            folder.mkdir(parents=True, exist_ok=True)
        if is_ours:
            _keep_out_of_git(base)
        with tempfile.TemporaryFile(dir=base / "run") as file:
            file.write(bytes(_PROBE_BYTES))
    except OSError as error:
        return f"cannot be written ({error.strerror})"
    return ""


def failures_folder() -> Path:
    """Return the folder of a fuzzer's failures: `.harness/fuzz`, wherever the homes are.

    Failures are inspected, played again and committed, so they stay in the current folder if it can
    be written and `--dir` names no other.
    """
    folder = Path(".harness")
    if os.environ.get(FOLDER_VARIABLE) or _write_problem_of_store(folder):
        folder = base_folder()
    return folder / "fuzz"


def _write_problem_of_store(folder: Path) -> str:
    try:
        folder.mkdir(exist_ok=True)
        _keep_out_of_git(folder)
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.access(folder, os.W_OK) else "it cannot be written"


def _keep_out_of_git(base: Path) -> None:
    """Write a .gitignore that ignores the whole folder."""
    ignored = base / ".gitignore"
    if not ignored.exists():
        ignored.write_text("# Made by the harness: all of this can be made again.\n*\n", "utf-8")


def find_kept_file(path: Path) -> Path:
    """Return the real path of a file below `.harness/`; any other path, or a missing one, as is."""
    if path.exists() or path.is_absolute() or path.parts[:1] != (".harness",):
        return path
    elsewhere = recorded_folder().joinpath(*path.parts[1:])
    return elsewhere if elsewhere.exists() else path


def keep_trace(base: Path, run: str, trace: Path, scenario: str) -> Path:
    """Keep a stored trace in the history of a run, and return its path there.

    The next run overwrites the original; until then both are one file if links are possible.
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
    """Remove the history of old runs; large runs are counted apart from small ones."""
    folder = base / HISTORY
    small: list[Path] = []
    large: list[Path] = []
    for run in (
        sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()
    ):
        is_large = sum(1 for _ in run.rglob("*.jsonl")) > LARGE_RUN_TRACES
        (large if is_large else small).append(run)
    for run in (*small[:-MAX_SMALL_RUNS_KEPT], *large[:-MAX_LARGE_RUNS_KEPT]):
        shutil.rmtree(run, ignore_errors=True)


class RunFolder:
    """The folder of one worker's run; `close` removes it. Making it removes those of dead runs."""

    def __init__(self, base: Path, worker: str) -> None:
        remove_dead_runs(base)
        self.path = base / "run" / f"{os.getpid()}-{worker}"
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        self._count = 0

    def new_folder(self, kind: str) -> Path:
        """Make and return a new, empty folder."""
        self._count += 1
        folder = self.path / f"{kind}{self._count}"
        folder.mkdir()
        return folder

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def write_home_files(home: Path, profile: Profile, values: dict[str, str]) -> None:
    """Write the profile's files into a home, with the placeholders in `values` filled in."""
    for name, content in profile.home.items():
        text = file_text(name, fill(content, values), profile.formats)
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")


def remove_dead_runs(base: Path, *, dead: str = "") -> None:
    """Remove the folders of runs that died, and end the processes that they started.

    `dead` names a worker that is known to have died, even if its process has not ended yet.
    """
    runs = base / "run"
    for folder in runs.glob("*-*") if runs.is_dir() else ():
        pid = folder.name.split("-", 1)[0]
        is_dead_worker = bool(dead) and folder.name == f"{pid}-{dead}"
        if pid.isdigit() and (not is_running(int(pid)) or (is_dead_worker and _is_ours(int(pid)))):
            kill_processes_of(folder.name)
            shutil.rmtree(folder, ignore_errors=True)


def _is_ours(pid: int) -> bool:
    try:
        return psutil.Process(pid).ppid() == os.getpid()
    except NO_ANSWER:
        return False
