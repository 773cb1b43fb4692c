"""A process that has imported the reference server, and forks an `agent …` for each request.

tests.agent_process starts it, and is the parent of the forks: Linux makes them its children. A fork
has the arguments, working directory, environment (in /proc too), descriptors, session and signals
of a started process. Not the same: imports and the building of models take no time, the interpreter
does not take its modules apart at the end, and the settings that Python has by its environment are
those of this process.
"""

import ctypes
import gc
import importlib
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import reference_server
from reference_server import cli
from tests import forks

PADDING = "x" * (1 << 16)
"""The last argument and the value of a variable: room for those of a fork."""
PADDED = "WARM_AGENT_PADDING"
_CLONE = {"x86_64": 56, "aarch64": 220}
"""The number of the system call `clone`, by machine."""
_CLONE_PARENT = 0x8000
_ARGUMENTS, _VARIABLES_END = 45, 49
"""Indices of the addresses of arguments and variables in /proc/self/stat, behind the name."""


OTHERS = ("anyio._backends._asyncio",)


def is_possible() -> bool:
    """Return whether forks can have another parent on this machine."""
    return sys.platform == "linux" and os.uname().machine in _CLONE


def fork_for_parent() -> int:
    """Fork a process that is a child of this process's parent; return as `os.fork` does."""
    # PyDLL keeps the lock of the interpreter, which is held in the fork too.
    libc = ctypes.PyDLL(None, use_errno=True)
    ctypes.pythonapi.PyOS_BeforeFork()
    number = ctypes.c_long(_CLONE[os.uname().machine])
    flags = ctypes.c_ulong(_CLONE_PARENT | signal.SIGCHLD)
    zero = ctypes.c_ulong(0)
    pid = libc.syscall(number, flags, zero, zero, zero, zero)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        if pid < 0:
            raise OSError(ctypes.get_errno(), "clone")
    return pid


def serve(requests: socket.socket) -> tuple[dict[str, Any], Callable[[], int | None]]:
    """Fork for each request; return only in the forks, with the request and what it shall run."""
    while (received := forks.receive(requests)) is not None:
        request, descriptors = received
        run = function(request["main"])
        pid = fork_for_parent()
        if pid == 0:
            place(descriptors, request["places"])
            return request, run
        forks.close(descriptors)
        requests.sendall(b"%d\n" % pid)
    os._exit(0)


@cache
def function(name: str) -> Callable[[], int | None]:
    """Return the function `module:function`; its module is imported for all later forks too."""
    module, _, attribute = name.partition(":")
    found: Callable[[], int | None] = getattr(importlib.import_module(module), attribute)
    gc.freeze()
    return found


def place(descriptors: Sequence[int], places: Sequence[int]) -> None:
    """Give the descriptors the numbers that a started process has, and close all others."""
    top = max(*descriptors, *places) + 1
    for offset, descriptor in enumerate(descriptors):
        os.dup2(descriptor, top + offset)
    os.closerange(0, top)
    for offset, number in enumerate(places):
        os.dup2(top + offset, number)
    ends = [*sorted(places)[1:], os.sysconf("SC_OPEN_MAX")]
    for number, end in zip(sorted(places), ends, strict=True):
        os.closerange(number + 1, end)


def show(words: Sequence[str], env: dict[str, str]) -> None:
    """Show these arguments and this environment to other processes, in /proc."""
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    arguments, arguments_end, variables, variables_end = map(int, stat[_ARGUMENTS:_VARIABLES_END])
    for texts, start, end in (
        (words, arguments, arguments_end),
        ([f"{name}={value}" for name, value in env.items()], variables, variables_end),
    ):
        block = b"".join(os.fsencode(text) + b"\0" for text in texts)
        assert len(block) <= end - start, "more than there is room for"
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, block, len(block))


def modules() -> Iterator[str]:
    """Yield the names of all modules of the server, also of its folders without `__init__.py`."""
    folder = Path(reference_server.__path__[0])
    for path in sorted(folder.rglob("*.py")):
        if path.stem not in ("__init__", "__main__"):
            yield ".".join(path.relative_to(folder.parent).with_suffix("").parts)


def main() -> None:
    """Import, wait, be what is asked."""
    gc.disable()
    cli._without_plugins()  # pyright: ignore[reportPrivateUsage]
    for name in (*OTHERS, *modules()):
        importlib.import_module(name)
    forks.build_models()
    gc.freeze()
    gc.enable()
    path = [one for one in sys.path if one != os.getcwd()]
    request, run = serve(socket.socket(fileno=int(sys.argv[1])))
    if request["umask"] >= 0:
        os.umask(request["umask"])
    if request["session"]:
        os.setsid()
    if request["group"] >= 0:
        os.setpgid(0, request["group"])
    os.chdir(request["cwd"])
    env = request["env"]
    forks.begin(request["words"], env)
    # The C library no longer uses the first block of variables.
    show(request["shown"], env)
    time.tzset()
    tempfile.tempdir = None
    added = [one for one in env.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:] = [*added, *(one for one in path if one not in added)]
    forks.leave(run)


if __name__ == "__main__":
    main()
