"""The first process of a confinement: it starts the server, bounds it, and reports its end.

Run as `python -I -S first_process.py SETTINGS VARIABLES COMMAND …` by bubblewrap, as process 1 of
a process namespace: when it ends, the kernel ends everything in it. Each start pays for its
imports, so there are few.

SETTINGS are words `name=number`: `report`, `stdin` and `stdout` are file descriptors;
`descriptors`, `processes` and `memory` (bytes) are the server's bounds; `grace` is the
milliseconds in which processes that outlive the server may end by themselves. VARIABLES are the
names of the environment that the server gets, with `=` between them.

Its report is lines: the server's exit status, negative for a signal, then the name of each process
that outlived it.
"""

import os
import resource
import signal
import sys
import time

# Seconds between two counts of processes and memory.
COUNT_SECONDS = 0.25
NOT_STARTED_STATUS = 127


def main() -> None:
    """Start the server, wait for its end or for a broken bound, and report it."""
    pairs = (word.split("=") for word in sys.argv[1].split())
    settings = {name: int(number) for name, number in pairs}
    # A bound is broken by the server, and must not stop its judge.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    server = os.fork()
    if server == 0:
        _become_server(settings, sys.argv[2].split("="), sys.argv[3:])
    os.close(settings["stdin"])
    os.close(settings["stdout"])
    statuses: dict[int, int] = {}
    bound = ""
    while server not in statuses and not bound:
        signal.sigtimedwait([signal.SIGCHLD], COUNT_SECONDS)
        _reap(statuses)
        bound = _broken_bound(settings)
    survivors = [] if bound else _survivors(settings["grace"] / 1000, statuses)
    status = statuses.get(server, -signal.SIGKILL)
    os.write(settings["report"], "\n".join([str(status), *survivors]).encode())
    if bound:
        os.write(2, f"confined: {bound}; all its processes were ended\n".encode())
    os._exit(status if status >= 0 else 128 - status)


def _become_server(settings: dict[str, int], names: list[str], command: list[str]) -> None:
    os.setsid()
    os.dup2(settings["stdin"], 0)
    os.dup2(settings["stdout"], 1)
    for name in ("stdin", "stdout", "report"):
        os.close(settings[name])
    for kind, most in (
        (resource.RLIMIT_NOFILE, settings["descriptors"]),
        (resource.RLIMIT_NPROC, settings["processes"]),
        (resource.RLIMIT_DATA, settings["memory"]),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    # Python ignores these, and programs inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    # Bubblewrap and Python add variables of their own.
    variables = {name: os.environ[name] for name in names if name in os.environ}
    try:
        os.execve(command[0], command, variables)
    except OSError as error:
        words = f"confined: {command[0]} cannot be started: {error.strerror}; it may be hidden: "
        os.write(2, f"{words}add its folder to [confine] readable of the profile\n".encode())
        os._exit(NOT_STARTED_STATUS)


def _reap(statuses: dict[int, int]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        statuses[pid] = os.waitstatus_to_exitcode(status)


def _others() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def _broken_bound(settings: dict[str, int]) -> str:
    """Return the bound that all processes together break, "" for none.

    Their memory is what no file backs: pages of libraries are shared, and counted for each.
    """
    others = _others()
    if len(others) > settings["processes"]:
        return f"more than {settings['processes']} processes"
    page, used = os.sysconf("SC_PAGE_SIZE"), 0
    for pid in others:
        try:
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                words = file.read().split()
        except OSError:  # It has ended.
            continue
        used += (int(words[1]) - int(words[2])) * page if words else 0
    return f"more than {settings['memory']} bytes of memory" if used > settings["memory"] else ""


def _survivors(grace: float, statuses: dict[int, int]) -> list[str]:
    """Return the processes that run on after the server's end; a parent's end may be noticed."""
    deadline = time.monotonic() + grace
    while names := [name for name in map(_name_of, _others()) if name]:
        seconds_left = deadline - time.monotonic()
        if seconds_left <= 0:
            return names[:40]
        signal.sigtimedwait([signal.SIGCHLD], min(seconds_left, COUNT_SECONDS / 5))
        _reap(statuses)
    return []


def _name_of(pid: str) -> str:
    """Return a process's name and id, "" if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            name, _, state = file.read().partition("(")[2].rpartition(")")
    except OSError:
        return ""
    return "" if state.split()[0] in "ZX" else f"{name} (pid {pid} of the confinement)"


if __name__ == "__main__":
    main()
