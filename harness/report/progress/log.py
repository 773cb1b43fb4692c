"""The file of a run's events: `.harness/progress/RUN.jsonl`, only ever appended to.

Every process of a run appends whole lines to the same file. A reader keeps the offset up to which
it has read.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.report.progress.events import Event, PlaysCounted, StepStarted, from_line, to_line

FOLDER: Final = "progress"
MAX_RUNS_KEPT: Final = 24
SAMPLE_SECONDS: Final = 0.25
_MAX_READ_BYTES: Final = 4 * 1024 * 1024


def run_name() -> str:
    """Return a name for this run that sorts after those of earlier runs."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}"


def progress_path(base: Path, run: str) -> Path:
    """Return the file of a run's events; `base` is the folder `.harness`."""
    return base / FOLDER / f"{run}.jsonl"


class ProgressLog:
    """Writer of one process's events; `listeners` get each event that this process writes.

    Without a path only the listeners get them. A file that cannot be written is given up without a
    word: it must not change a verdict. Safe to use from any thread; listeners are called on the
    thread that writes, one at a time.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.listeners: list[Callable[[Event], None]] = []
        self.counts_plays = False
        """Set for a campaign, whose plays are not written one by one."""
        self._lock = threading.RLock()
        self._path = path
        self._file: int | None = None
        self._steps: dict[str, StepStarted] = {}
        self._current: dict[str, StepStarted] = {}
        self._plays = 0
        self._sampler: threading.Thread | None = None
        self._stopped = threading.Event()

    def write(self, event: Event) -> None:
        """Append an event, and pass it to the listeners."""
        with self._lock:
            if self._path is not None:
                try:
                    os.write(self._open(self._path), to_line(event, time.time()))
                except OSError:
                    self._path = None
            for listener in self.listeners:
                listener(event)

    def _open(self, path: Path) -> int:
        """Return the file, made by the first event."""
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o600)
        return self._file

    def count_play(self) -> None:
        """Count a play, if this log `counts_plays`; the count is written now and then."""
        if not self.counts_plays:
            return
        with self._lock:
            self._plays += 1
            self._start_sampler()

    def begin_step(self, lane: str, scenario: str, step: str) -> None:
        """Note the step of a lane; it is written if a sample finds it."""
        if self._path is None and not self.listeners:
            return
        with self._lock:
            started = StepStarted(scenario=scenario, lane=lane, step=step)
            self._steps[lane] = self._current[lane] = started
            self._start_sampler()

    def begin_wait(self, lane: str, waits_for: str, bound: float) -> None:
        """Note what the step of a lane waits for, and for how many seconds at most."""
        with self._lock:
            step = self._current.get(lane)
            if step is not None:
                step = replace(step, waits_for=waits_for, bound=bound)
                self._steps[lane] = self._current[lane] = step

    def end_steps(self, lane: str) -> None:
        """Forget the step of a lane whose play has ended."""
        with self._lock:
            self._steps.pop(lane, None)
            self._current.pop(lane, None)

    def _start_sampler(self) -> None:
        if self._sampler is None:
            self._sampler = threading.Thread(target=self._sample, daemon=True)
            self._sampler.start()

    def _sample(self) -> None:
        written_plays = 0
        while not self._stopped.wait(SAMPLE_SECONDS):
            self.sample()
            with self._lock:
                if self._plays > written_plays:
                    written_plays = self._plays
                    self.write(PlaysCounted(plays=written_plays))

    def sample(self) -> None:
        """Write the steps that have begun, or begun to wait, since the last sample."""
        with self._lock:
            for step in self._steps.values():
                self.write(step)
            self._steps.clear()

    def close(self) -> None:
        """End the sampling of steps and close the file."""
        self._stopped.set()
        if self._sampler is not None:
            self._sampler.join()
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = self._path = None


SILENT: Final = ProgressLog()
"""A log without a file and listeners, for callers that show no progress."""


def read_events(path: Path, offset: int = 0) -> list[tuple[Event, float, int]]:
    """Return the events after `offset` bytes: each with its time and the offset after its line.

    An unfinished last line is left for the next time, a damaged one is skipped. Raises `OSError`.
    """
    events: list[tuple[Event, float, int]] = []
    with path.open("rb") as file:
        file.seek(offset)
        for line in file.read(_MAX_READ_BYTES).splitlines(keepends=True):
            offset += len(line)
            event = from_line(line)
            if event is not None:
                events.append((*event, offset))
    return events


def remove_old_logs(base: Path) -> None:
    """Keep the files of the last `MAX_RUNS_KEPT` runs."""
    with contextlib.suppress(OSError):
        files = sorted((base / FOLDER).glob("*.jsonl"), key=lambda one: one.stat().st_mtime)
        for path in files[:-MAX_RUNS_KEPT]:
            path.unlink(missing_ok=True)
