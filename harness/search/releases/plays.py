"""Plays of releases, each a `harness run` in a process of its own, and their stored results.

A result is stored under a key of server, suite and profile, and used again for the same key. Only
complete runs of servers that could be judged are.
"""

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

import harness
from harness.errors import UsageError
from harness.report.json_form import read_report
from harness.report.results.report import Report
from harness.scenario.bundled import bundled_folder
from harness.scenario.identity import SUFFIXES, file_of
from harness.scenario.scenario_names import named_files
from harness.search.releases.target import Release

FOLDER: Final = "judged"
INTERRUPTED: Final = "interrupted"
CONFINED_OPTION: Final = "--confine-auto"
_KEY_CHARACTERS = 12
_OUTPUT = "output.txt"
_UNCONFINED = "NOT CONFINED"
# A server that cannot be judged, whatever the scenarios say: `setup.not-started` and others.
_SETUP = "setup."
_HANDLED = (signal.SIGINT, signal.SIGTERM)
_PROFILES = ("client", "target", "profiles")
# The parts of the harness that make a verdict.
_JUDGING_ROOMS = (
    "protocol", "trace", "judge", "model", "client", "scenario", "play", "report/results"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Play:
    """One run of a release. `problem` says why it could not be judged, "" if it was.

    `reused` is whether a stored result was taken, `key` what it is stored by. `note` is the run's
    line on a server that could not be confined, "" if it was or need not be.
    """

    release: Release
    key: str = ""
    folder: Path = Path()
    report: Report | None = None
    problem: str = ""
    reused: bool = False
    note: str = ""


@dataclass(slots=True)
class Plays:
    """Plays of scenarios on releases. `options` are further ones of `harness run`, `on` a cluster.

    With `fresh` no stored result is used. After `stop` nothing is played any more. `playing` has
    the folders of the running plays by the label of their release.
    """

    base: Path
    options: Sequence[str] = ()
    fresh: bool = False
    on: str = ""
    stopped_by: signal.Signals | None = None
    playing: dict[str, Path] = field(default_factory=dict[str, Path])
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set[subprocess.Popen[bytes]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def play(self, release: Release, scenarios: Sequence[str], number: int = 1) -> Play:
        """Judge a release, or return its stored result; `number` counts plays of the same."""
        words = [*scenarios, *self.options, *([f"play {number}"] if number > 1 else [])]
        key = _digest([release.identity(), suite_hash(tuple(scenarios)), *words])
        name = re.sub(r"[^\w.@-]+", "_", release.label)
        folder = self.base / FOLDER / f"{name}-{key[:_KEY_CHARACTERS]}"
        if not self.fresh:
            report = _read_stored(folder)
            if report is not None:
                return Play(release, key, folder, report, reused=True, note=_note(folder))
        return self._play_anew(release, scenarios, key, folder)

    def stop(self, number: int, _frame: FrameType | None = None) -> None:
        """Interrupt what is being played, and play nothing more: a signal handler."""
        self.stopped_by = signal.Signals(number)
        for process in tuple(self._running):
            process.send_signal(signal.SIGINT)

    def _play_anew(
        self, release: Release, scenarios: Sequence[str], key: str, folder: Path
    ) -> Play:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        report_path, output = folder / "report.json", folder / _OUTPUT
        words = [sys.executable, "-P", "-m", "harness", "run", *scenarios, *self.options]
        words += [*release.programs.options(*_surfaces(release)), "--dir", str(folder)]
        words += ["--json", str(report_path), *(["--on", self.on] if self.on else [])]
        self.playing[release.label] = folder
        try:
            with output.open("wb") as out:
                self.run_process(words, out.fileno())
        finally:
            del self.playing[release.label]
        if self.stopped_by is not None:
            return Play(release, key, folder, problem=INTERRUPTED)
        try:
            report = read_report(report_path)
        except (OSError, ValueError):
            return Play(release, key, folder, problem=_last_words(output))
        return Play(release, key, folder, report, setup_problem(report), note=_note(folder))

    def run_process(self, words: Sequence[str], output: int) -> None:
        """Run a process to its end. Its group is its own, so that Ctrl-C reaches it once."""
        with self._lock:
            if self.stopped_by is not None:
                return
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0
            )
            self._running.add(process)
        if self.stopped_by is not None:  # It came while the process started.
            process.send_signal(signal.SIGINT)
        process.wait()
        self._running.discard(process)


def options_of(
    lanes: int | None, repeat: int, scale: float, *, confine: bool, on: str
) -> list[str]:
    """Return the options of `harness run`. Raises `UsageError` for a confined run on a cluster."""
    if on and confine:
        raise UsageError(f"--on {on}: servers are not confined on a cluster; add --no-confine")
    options = [] if lanes is None else ["--lanes", str(lanes)]
    options += ["--repeat", str(repeat)] if repeat > 1 else []
    options += ["--timeout-scale", str(scale)] if scale != 1 else []
    return [*options, *([CONFINED_OPTION] if confine else [])]


def setup_problem(report: Report) -> str:
    """Return why the server of a run could not be judged, "" if it could."""
    return next((issue.message for issue in report.issues if issue.id.startswith(_SETUP)), "")


def _surfaces(release: Release) -> list[str]:
    names = {"session": "server", "exec": "agent", "sdk": "sdk"}
    return [surface for surface, kind in names.items() if getattr(release.programs, kind)]


def _read_stored(folder: Path) -> Report | None:
    """Return the stored report of a complete run of a server that could be judged."""
    try:
        report = read_report(folder / "report.json")
    except (OSError, ValueError):
        return None
    is_complete = not (report.interrupted or report.unplayed or setup_problem(report))
    return report if is_complete else None


def _note(folder: Path) -> str:
    """Return the line of a run's output that says why its server was not confined, "" if none."""
    try:
        lines = (folder / _OUTPUT).read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(_UNCONFINED)), "")


def _last_words(output: Path) -> str:
    lines = output.read_text("utf-8", "replace").strip().splitlines()
    words = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
    return f"{words.removeprefix('ERROR: ').removeprefix('harness: ')} (harness run; all: {output})"


@cache
def suite_hash(scenarios: tuple[str, ...]) -> str:
    """Return a hash of the scenarios that the words name, () for all, and of what judges them."""
    files = named_files(scenarios) if scenarios else _files_in(bundled_folder(), SUFFIXES)
    package = Path(harness.__file__).parent
    profiles = package.joinpath(*_PROFILES)
    judging = (
        file
        for room in _JUDGING_ROOMS
        for file in _files_in(package / room, (".py", ".yaml", ".json"))
        if not file.is_relative_to(profiles)
    )
    paths = {file_of(file) for file in files}
    return _digest(
        hashlib.sha256(file.read_bytes()).hexdigest() for file in [*sorted(paths), *judging]
    )


def _files_in(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.name.endswith(suffixes))


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(list(words)).encode("utf-8", "surrogateescape")).hexdigest()


@contextmanager
def stop_on_signals(plays: Plays) -> Generator[None]:
    """Let SIGINT and SIGTERM in the block stop the plays; what is judged by then is kept."""
    handlers = {number: signal.signal(number, plays.stop) for number in _HANDLED}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
