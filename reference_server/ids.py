"""Thread and turn numbers that no two servers of one home ever share.

Here lives the counter file: one line `threads N turns M`, the last numbers taken, changed under an
exclusive lock. Numbers are taken in blocks, so a server leaves a gap when it ends; the shapes
`thr_<n>` and `turn_<n>` promise no gapless row. A lost or damaged file is made again from the
rollouts. Source: session-protocol "Thread" and "Turn" (id shapes).
"""

import fcntl
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

THREADS_AT_ONCE = 4
TURNS_AT_ONCE = 64
_SHAPE = re.compile(rb"threads (\d+) turns (\d+)\n")


@dataclass(frozen=True, slots=True)
class Counters:
    """The highest thread and turn number in use."""

    threads: int = 0
    turns: int = 0


class IdAllocator:
    """Hands out ids; `seed` finds the highest numbers in use when the file cannot say."""

    def __init__(self, path: Path, seed: Callable[[], Counters]) -> None:
        self._path = path
        self._seed = seed
        self._threads = iter(range(0))
        self._turns = iter(range(0))

    def thread_id(self) -> str:
        """Give a new `thr_<n>`. Raises OSError."""
        number = next(self._threads, None)
        if number is None:
            start = self._take(THREADS_AT_ONCE, 0).threads + 1
            self._threads = iter(range(start, start + THREADS_AT_ONCE))
            number = next(self._threads)
        return f"thr_{number}"

    def turn_id(self) -> str:
        """Give a new `turn_<n>`. Raises OSError."""
        number = next(self._turns, None)
        if number is None:
            start = self._take(0, TURNS_AT_ONCE).turns + 1
            self._turns = iter(range(start, start + TURNS_AT_ONCE))
            number = next(self._turns)
        return f"turn_{number}"

    def _take(self, threads: int, turns: int) -> Counters:
        """Move the counters on and give what they were."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self._path) as descriptor:
            found = _SHAPE.fullmatch(os.pread(descriptor, 200, 0))
            old = Counters(int(found[1]), int(found[2])) if found else self._seed()
            line = f"threads {old.threads + threads} turns {old.turns + turns}\n".encode()
            try:
                # Numbers only grow, so the new line covers the old one.
                os.pwrite(descriptor, line, 0)
                os.ftruncate(descriptor, len(line))
            except OSError as error:
                # It does not say by itself which file.
                raise OSError(error.errno, error.strerror, str(self._path)) from error
        return old


@contextmanager
def _locked(path: Path) -> Generator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
