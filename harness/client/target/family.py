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

    def find_living(self) -> dict[int, psutil.Process]:
        """The running descendants by id; none if the process itself has ended."""
        if LISTS_CHILDREN:
            # Process ids are assigned in turn: one that becomes free is not reused before the
            # next look.
            processes = {pid: self._living.get(pid) or _find_process(pid) for pid in _descendants_of(self._pid)}
            self._living = {pid: one for pid, one in processes.items() if one and is_alive(one)}
        else:
            self._living = {one.pid: one for one in _descendants_by_psutil(self._pid) if is_alive(one)}
        return self._living


def _find_process(pid: int) -> psutil.Process | None:
    """The process, None if it has ended."""
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _descendants_of(pid: int) -> Iterator[int]:
    for child in _children_of(pid):
        yield child
        yield from _descendants_of(child)


def _children_of(pid: int) -> list[int]:
    """The children of a process, those included that have ended and were not reaped.

    The kernel can omit one while a child before it in the list is reaped, never the first: a list
    that is not empty counts once it was read twice.
    """
    children, before = _read_children(pid), None
    while children and children != before:
        children, before = _read_children(pid), children
    return children


def _read_children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            # A thread can end after the folder was listed.
            with contextlib.suppress(OSError):
                children += map(int, _read_proc_file(f"/proc/{pid}/task/{task}/children").split())
    return children


def _read_proc_file(path: str) -> bytes:
    """A file of /proc, unbuffered: a server is asked for hundreds of them in a run."""
    with open(path, "rb", buffering=0) as source:
        return source.readall()


def _descendants_by_psutil(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def is_alive(process: psutil.Process) -> bool:
    """Return whether it runs; a zombie counts as ended, even if its parent has not reaped it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def describe_process(process: psutil.Process) -> str:
    """A process's name and id, for messages."""
    try:
        return f"{process.name()} (pid {process.pid})"
    except psutil.Error:
        return f"pid {process.pid}"


def marked_processes(mark: str) -> dict[int, psutil.Process]:
    """Processes whose mark has this prefix, even if their parent ended or they left its session."""
    processes: dict[int, psutil.Process] = {}
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if _mark_of(pid).startswith(mark):
                processes[pid] = psutil.Process(pid)
    return processes


def _mark_of(pid: int) -> str:
    """The mark in a process's environment, "" for none."""
    if not psutil.LINUX:
        return psutil.Process(pid).environ().get(MARK, "")
    # The text is searched as it is: a dictionary of each process's variables takes ten times as
    # long, and this is asked at the end of every server.
    environment = (b"\0" + _read_proc_file(f"/proc/{pid}/environ")).partition(f"\0{MARK}=".encode())[2]
    return os.fsdecode(environment.partition(b"\0")[0])


def wait(processes: Iterable[psutil.Process], bound: float) -> None:
    """Wait until they have ended, `bound` seconds for all of them; blocks the thread."""
    deadline = time.monotonic() + bound
    for process in processes:
        while is_alive(process) and (left := deadline - time.monotonic()) > 0:
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


async def kill_survivors(descendants: Iterable[psutil.Process], grace: float) -> tuple[str, ...]:
    """Kill descendants that still run after their server ended; give their names."""
    left = [process for process in descendants if is_alive(process)]
    if not left:
        return ()
    # A child whose parent has just ended may be about to end by itself.
    await anyio.to_thread.run_sync(wait, left, min(grace, 0.5))
    names: list[str] = []
    for process in filter(is_alive, left):
        try:
            names.append(describe_process(process))
            process.kill()
        except psutil.Error:
            continue
    await anyio.to_thread.run_sync(wait, left, grace)
    return tuple(names)
