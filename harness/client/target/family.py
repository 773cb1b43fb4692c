"""The processes that a server started: finding them, whether they run, and ending them."""

import contextlib
import os
import select
import time
from collections.abc import Iterable, Iterator

import anyio.to_thread
import psutil

# A variable in a server's environment, inherited by every process that it starts.
MARK = "HARNESS_SERVER_MARK"
# Seconds between two checks whether a process has ended, where its end cannot be waited for.
_TICK = 0.02
# A kernel can be built without these files; other systems than Linux have none.
LISTS_CHILDREN = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


class Descendants:
    """The living descendants of the process `pid`: asked in each scenario, so it must be cheap.

    Linux lists the children of a process; elsewhere psutil asks all processes for their parents.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._living: dict[int, psutil.Process] = {}

    def living(self) -> dict[int, psutil.Process]:
        """The running descendants by id; none if the process itself has ended."""
        if LISTS_CHILDREN:
            # Process ids are assigned in turn: one that becomes free is not reused before the
            # next look.
            found = {pid: self._living.get(pid) or _process(pid) for pid in _below(self._pid)}
            self._living = {pid: one for pid, one in found.items() if one and alive(one)}
        else:
            self._living = {one.pid: one for one in _asked_below(self._pid) if alive(one)}
        return self._living


def _process(pid: int) -> psutil.Process | None:
    """The process, None if it has ended."""
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _below(pid: int) -> Iterator[int]:
    for child in _children_of(pid):
        yield child
        yield from _below(child)


def _children_of(pid: int) -> list[int]:
    """The children of a process, those included that have ended and were not reaped.

    The kernel can omit one while a child before it in the list is reaped, never the first: a list
    that is not empty counts once it was read twice.
    """
    found, before = _listed_children(pid), None
    while found and found != before:
        found, before = _listed_children(pid), found
    return found


def _listed_children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            # A thread can end after the folder was listed.
            with contextlib.suppress(OSError):
                found += map(int, _content(f"/proc/{pid}/task/{task}/children").split())
    return found


def _content(path: str) -> bytes:
    """A file of /proc, unbuffered: a server is asked for hundreds of them in a run."""
    with open(path, "rb", buffering=0) as source:
        return source.readall()


def _asked_below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def alive(process: psutil.Process) -> bool:
    """Return whether it runs; a zombie counts as ended, even if its parent has not reaped it."""
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
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if _mark_of(pid).startswith(mark):
                found[pid] = psutil.Process(pid)
    return found


def _mark_of(pid: int) -> str:
    """The mark in a process's environment, "" for none."""
    if not psutil.LINUX:
        return psutil.Process(pid).environ().get(MARK, "")
    # The text is searched as it is: a dictionary of each process's variables takes ten times as
    # long, and this is asked at the end of every server.
    found = (b"\0" + _content(f"/proc/{pid}/environ")).partition(f"\0{MARK}=".encode())[2]
    return os.fsdecode(found.partition(b"\0")[0])


def wait(processes: Iterable[psutil.Process], bound: float) -> None:
    """Wait until they have ended, `bound` seconds for all of them; blocks the thread."""
    deadline = time.monotonic() + bound
    for process in processes:
        while alive(process) and (left := deadline - time.monotonic()) > 0:
            _await_end(process, left)


def _await_end(process: psutil.Process, bound: float) -> None:
    """Wait for its end, or for a moment where the system has no event for that."""
    try:
        watched = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        with contextlib.suppress(psutil.Error):
            process.wait(min(bound, _TICK))
        return
    try:
        ends = select.poll()
        ends.register(watched, select.POLLIN)
        ends.poll(bound * 1000)
    finally:
        os.close(watched)


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
