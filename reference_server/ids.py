"""Thread and turn numbers that no two servers of one home ever share.

The file has one line `threads N turns M`, the last numbers taken, changed under an exclusive lock.
Numbers are taken in blocks, so a server leaves a gap when it ends; the shapes `thr_<n>` and
`turn_<n>` do not promise consecutive numbers. A lost or damaged file is made again from the
rollouts. Source: session-protocol "Thread" and "Turn" (id shapes).
"""

import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from reference_server.safe_files import lock, make_private, open_regular

THREADS_AT_ONCE = 4
TURNS_AT_ONCE = 64
NUMBER = "[0-9]{1,15}"
"""A number in the file. More digits are damage, and no JSON reader could be trusted with them."""
_SHAPE = re.compile(f"threads ({NUMBER}) turns ({NUMBER})\n".encode())
_MAX_FILE_BYTES = 200


_THREAD = re.compile(f"thr_{NUMBER}")


def is_thread_id(text: str) -> bool:
    """Return whether a text has the shape of a thread's id (other text could be a path)."""
    return _THREAD.fullmatch(text) is not None


def thread_number(thread_id: str) -> int:
    """Return the number in a `thr_<n>`."""
    return int(thread_id.removeprefix("thr_"))


class Counters(NamedTuple):
    """The highest thread and turn number in use."""

    threads: int = 0
    turns: int = 0


class IdAllocator:
    """Source of new ids; `seed` finds the highest numbers in use if the file does not have them.

    The file is changed in a worker thread, once for a whole block of numbers: the seed reads every
    rollout, and another server may hold the lock while it does so.
    """

    def __init__(self, path: Path, seed: Callable[[], Counters]) -> None:
        self._path = path
        self._seed = seed
        self._threads = iter(range(0))
        self._turns = iter(range(0))

    async def new_thread_id(self) -> str:
        """Return a new `thr_<n>`. Raises OSError."""
        while (number := next(self._threads, None)) is None:
            old = await _take_in_thread(partial(self._take, THREADS_AT_ONCE, 0))
            self._threads = iter(range(old.threads + 1, old.threads + 1 + THREADS_AT_ONCE))
        return f"thr_{number}"

    async def new_turn_id(self) -> str:
        """Return a new `turn_<n>`. Raises OSError."""
        while (number := next(self._turns, None)) is None:
            old = await _take_in_thread(partial(self._take, 0, TURNS_AT_ONCE))
            self._turns = iter(range(old.turns + 1, old.turns + 1 + TURNS_AT_ONCE))
        return f"turn_{number}"

    async def new_turn_ids(self, count: int) -> list[str]:
        """Return `count` new `turn_<n>`, in order. Raises OSError."""
        if not count:
            return []
        old = await _take_in_thread(partial(self._take, 0, count))
        return [f"turn_{number}" for number in range(old.turns + 1, old.turns + 1 + count)]

    def _take(self, threads: int, turns: int) -> Counters:
        """Add to the counters in the file and return their previous values. Raises OSError."""
        make_private(self._path.parent)
        with _locked_file(self._path) as descriptor:
            match = _SHAPE.fullmatch(os.pread(descriptor, _MAX_FILE_BYTES, 0))
            old = Counters(int(match[1]), int(match[2])) if match else self._seed()
            line = f"threads {old.threads + threads} turns {old.turns + turns}\n".encode()
            try:
                # Numbers only grow, so the new line covers the old one.
                os.pwrite(descriptor, line, 0)
                os.ftruncate(descriptor, len(line))
            except OSError as error:
                # The error of a descriptor does not name the file.
                raise OSError(error.errno, error.strerror, str(self._path)) from error
        return old


async def _take_in_thread(take: Callable[[], Counters]) -> Counters:
    """Take numbers in a worker thread; a caller that is cancelled leaves a gap in the numbers."""
    return await to_thread.run_sync(take, abandon_on_cancel=True)


@contextmanager
def _locked_file(path: Path) -> Generator[int]:
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        lock(descriptor, path)
        yield descriptor
    finally:
        os.close(descriptor)
