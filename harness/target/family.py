"""The processes that a server started: who they are, whether they live, and their end.

Here: descendants by parenthood, and by a mark in the environment, which also finds those whose
parent ended or that left the session. Not here: the server's own process (process).
"""

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

import anyio.to_thread
import psutil

# In a server's environment, and so in that of everything it starts: how to find them again.
MARK = "HARNESS_SERVER_MARK"
# How often it is looked whether a process that is not our child has ended, in seconds.
_TICK = 0.02


def descendants(pid: int) -> dict[int, psutil.Process]:
    """The living descendants of a process, by id."""
    if _childless(pid):
        return {}
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return {}
    return {child.pid: child for child in found if alive(child)}


def _childless(pid: int) -> bool:
    """Whether a process certainly has no child: asked at each end of a trace, so it must be cheap.

    Linux lists the children of each thread. The lists can miss some while others end, so that
    only an empty one is believed; to know who they are, all processes of the system are looked at.
    """
    try:
        lists = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
        return bool(lists) and not any(one.read_bytes() for one in lists)
    except OSError:
        return False


def alive(process: psutil.Process) -> bool:
    """Whether it runs; a zombie has ended: who reaps it is not us."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def named(process: psutil.Process) -> str:
    """Its name and id."""
    try:
        return f"{process.name()} (pid {process.pid})"
    except psutil.Error:
        return f"pid {process.pid}"


def marked(mark: str) -> dict[int, psutil.Process]:
    """Processes whose mark begins so, also those whose parent ended or that left its session."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(mark):
                found[process.pid] = process
        except (psutil.Error, OSError):
            continue
    return found


def wait(processes: Iterable[psutil.Process], bound: float) -> None:
    """Wait for their ends, `bound` seconds for all; blocks the thread."""
    deadline = time.monotonic() + bound
    for process in processes:
        while alive(process) and (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(psutil.Error):
                process.wait(min(left, _TICK))


async def reap(known: Iterable[psutil.Process], grace: float) -> tuple[str, ...]:
    """Kill descendants that outlived their server; give their names."""
    left = [process for process in known if alive(process)]
    if not left:
        return ()
    # A child whose parent has just gone may be about to end by itself: give it the grace.
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
