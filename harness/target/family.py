"""The processes that a server started: finding them, whether they run, and ending them.

Here: descendants by parent, and by a mark in the environment, which also finds those whose parent
ended or that left the session. Not here: the server's own process (process).
"""

import contextlib
import time
from collections.abc import Iterable

import anyio.to_thread
import psutil

# A variable in a server's environment, inherited by every process that it starts.
MARK = "HARNESS_SERVER_MARK"
# Seconds between two checks whether a process that is not our child has ended.
_TICK = 0.02


class Descendants:
    """The living descendants of the process `pid`: asked in each scenario, so it must be cheap.

    A process that is not a descendant never becomes one: when its parent ends, it is given to an
    ancestor of the parent. So the parent of such a process is looked up once, and not again while
    it runs. (Process ids are assigned in turn: one that becomes free is not reused before the
    next look.)
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._strangers: set[int] = {0}

    def living(self) -> dict[int, psutil.Process]:
        """The running descendants by id; none where the process itself has ended."""
        present = set(psutil.pids())
        if self._pid not in present:
            return {}
        self._strangers &= present | {0}
        unknown: dict[int, psutil.Process] = {}
        parents: dict[int, int] = {}
        for pid in present - self._strangers - {self._pid}:
            with contextlib.suppress(psutil.Error):
                unknown[pid] = process = psutil.Process(pid)
                parents[pid] = process.ppid()
        return {
            pid: process
            for pid, process in unknown.items()
            if self._is_one(pid, parents) and alive(process)
        }

    def _is_one(self, pid: int, parents: dict[int, int]) -> bool:
        """Follow the parents; one that has gone meanwhile leaves it open whose child it is."""
        line: list[int] = []
        while pid in parents and pid not in self._strangers and pid not in line:
            line.append(pid)
            pid = parents[pid]
        if pid in self._strangers:
            self._strangers.update(line)
        return pid == self._pid


def alive(process: psutil.Process) -> bool:
    """Whether it runs; a zombie counts as ended, even if its parent has not reaped it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def named(process: psutil.Process) -> str:
    """A process's name and id, for messages."""
    try:
        return f"{process.name()} (pid {process.pid})"
    except psutil.Error:
        return f"pid {process.pid}"


def marked(mark: str) -> dict[int, psutil.Process]:
    """Processes whose mark has this prefix, even if their parent ended or they left its session."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(mark):
                found[process.pid] = process
        except (psutil.Error, OSError):
            continue
    return found


def wait(processes: Iterable[psutil.Process], bound: float) -> None:
    """Wait until they have ended, `bound` seconds for all of them; blocks the thread."""
    deadline = time.monotonic() + bound
    for process in processes:
        while alive(process) and (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(psutil.Error):
                process.wait(min(left, _TICK))


async def reap(known: Iterable[psutil.Process], grace: float) -> tuple[str, ...]:
    """Kill descendants that still run after their server ended; give their names."""
    left = [process for process in known if alive(process)]
    if not left:
        return ()
    # A child whose parent has just ended may be about to end by itself.
    await anyio.to_thread.run_sync(wait, left, min(grace, 0.5))
    names: list[str] = []
    for process in filter(alive, left):
        try:
            names.append(named(process))
            process.kill()
        except psutil.Error:
            continue
    await anyio.to_thread.run_sync(wait, left, grace)
    return tuple(names)
