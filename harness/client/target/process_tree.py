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
# Raised by psutil about a process that ended or is hidden, and about all of them without /proc.
NO_ANSWER = (psutil.Error, OSError)
# Seconds between two checks whether a process has ended, if the system has no event for it.
_TICK = 0.02
# A kernel can be built without these files; other systems lack them.
LISTS_CHILDREN = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


class Descendants:
    """The living descendants of the process `pid`. Every scenario asks, so it must be cheap.

    Linux lists the children of a process; elsewhere psutil reads the parents of all processes.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._living: dict[int, psutil.Process] = {}

    def find_living(self) -> dict[int, psutil.Process]:
        """Return the running descendants by id; none if the process itself has ended."""
        if LISTS_CHILDREN:
            # Process ids are assigned in turn: one that becomes free is not reused before the
            # next look.
            processes = {
                pid: self._living.get(pid) or _find_process(pid)
                for pid in _descendants_of(self.pid)
            }
            self._living = {
                pid: child for pid, child in processes.items() if child and is_alive(child)
            }
        else:
            self._living = {
                child.pid: child for child in _descendants_by_psutil(self.pid) if is_alive(child)
            }
        return self._living


def first_grandchild_of(pid: int) -> int | None:
    """Return the process id of the first child of the first child, None if there is none."""
    for _ in range(2):
        if LISTS_CHILDREN:
            children = _children_of(pid)
        else:
            children = [child.pid for child in _descendants_by_psutil(pid, recursive=False)]
        if not children:
            return None
        pid = children[0]
    return pid


def _find_process(pid: int) -> psutil.Process | None:
    """Return the process, None if it has ended."""
    try:
        return psutil.Process(pid)
    except NO_ANSWER:
        return None


def _descendants_of(pid: int) -> Iterator[int]:
    for child in _children_of(pid):
        yield child
        yield from _descendants_of(child)


def _children_of(pid: int) -> list[int]:
    """Return the children of a process, including those that ended and were not reaped.

    The kernel can omit a child while an earlier one is reaped, never the first: a list that is not
    empty is read until two readings agree.
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
    """Read a file of /proc, unbuffered: a run reads hundreds of them."""
    with open(path, "rb", buffering=0) as source:
        return source.readall()


def _descendants_by_psutil(pid: int, *, recursive: bool = True) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=recursive)
    except NO_ANSWER:
        return []


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie counts as ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except NO_ANSWER:
        return False


def describe_process(process: psutil.Process) -> str:
    """Return a process's name and id, for messages."""
    try:
        return f"{process.name()} (pid {process.pid})"
    except NO_ANSWER:
        return f"pid {process.pid}"


def marked_processes(mark: str) -> dict[int, psutil.Process]:
    """Return the processes whose mark has this prefix, in whatever session they are."""
    processes: dict[int, psutil.Process] = {}
    for pid in _process_ids():
        with contextlib.suppress(*NO_ANSWER):
            if _mark_of(pid).startswith(mark):
                processes[pid] = psutil.Process(pid)
    return processes


def kill_processes_of(owner: str) -> int:
    """Kill every process that a run left behind when it died; return their number."""
    processes = marked_processes(f"{owner}:")
    for process in processes.values():
        with contextlib.suppress(*NO_ANSWER):
            process.kill()
    return len(processes)


def _process_ids() -> list[int]:
    """Return the ids of all processes; none if there is no /proc."""
    with contextlib.suppress(*NO_ANSWER, IndexError):  # psutil indexes an empty list.
        return psutil.pids()
    return []


def find_processes_note() -> str:
    """Return a warning if processes cannot be listed, "" if they can."""
    if _process_ids():
        return ""
    return "no process can be listed (no /proc): what a server leaves behind is not found"


def is_running(pid: int) -> bool:
    """Return whether a process runs, whoever started it; True if the system does not say."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        if _process_ids():
            return False
    except NO_ANSWER:
        pass
    try:  # This also succeeds for the id of a thread, so it comes last.
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # The process is another user's.
    return True


def _mark_of(pid: int) -> str:
    """Return the mark in a process's environment, "" for none."""
    if not psutil.LINUX:
        return psutil.Process(pid).environ().get(MARK, "")
    # The text is searched as it is: a dictionary of each process's variables takes ten times as
    # long, and this is asked at the end of every server.
    environment = (b"\0" + _read_proc_file(f"/proc/{pid}/environ")).partition(
        f"\0{MARK}=".encode()
    )[2]
    return os.fsdecode(environment.partition(b"\0")[0])


def wait(processes: Iterable[psutil.Process], bound: float) -> None:
    """Wait until the processes have ended, at most `bound` seconds in all; blocks the thread."""
    deadline = time.monotonic() + bound
    for process in processes:
        while is_alive(process) and (seconds_left := deadline - time.monotonic()) > 0:
            _await_end(process, seconds_left)


def _await_end(process: psutil.Process, bound: float) -> None:
    """Wait at most `bound` seconds for a process's end; `_TICK` if the system has no event."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        with contextlib.suppress(*NO_ANSWER):
            process.wait(min(bound, _TICK))
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(bound * 1000)
    finally:
        os.close(descriptor)


async def kill_survivors(descendants: Iterable[psutil.Process], grace: float) -> tuple[str, ...]:
    """Kill descendants that still run after their server ended; return their names."""
    running = [process for process in descendants if is_alive(process)]
    if not running:
        return ()
    # A child whose parent has just ended may be about to end by itself.
    await anyio.to_thread.run_sync(wait, running, min(grace, 0.5))
    names: list[str] = []
    for process in filter(is_alive, running):
        try:
            names.append(describe_process(process))
            process.kill()
        except NO_ANSWER:
            continue
    await anyio.to_thread.run_sync(wait, running, grace)
    return tuple(names)
