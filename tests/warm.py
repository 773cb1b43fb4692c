"""A process that has imported the harness, and becomes `harness …` or pytest in a fork each time it
is asked.

Started by tests.processes. It is asked in lines of JSON, the descriptors of output and errors with
them, and answers with the process id and, in the end, the exit status. What a fork must have as a
process that was started has it: arguments, folder, environment, streams, signals. `harness run`
becomes another program (`os.execve`); that is imported already too.
"""

import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import harness
from harness.__main__ import main as command
from harness.runner import console
from harness.suite.__main__ import main as run_command

OTHERS = ("pytest", "typer.rich_utils", "xdist.plugin")
# Is for tests of this project, with a development dependency.
NOT_IMPORTED = "harness.snapshot"
RUN = "harness.suite"


class Becomes(BaseException):
    """This process is to be another program."""

    def __init__(self, words: list[str], env: Mapping[str, str]) -> None:
        super().__init__()
        self.words = words
        self.env = dict(env)


def execve(program: str, words: list[str], env: Mapping[str, str]) -> NoReturn:
    """Stands in for `os.execve`: knows the command of `harness run`, and no other."""
    start = [sys.executable, "-P", "-m", RUN]
    if [program, *words[1 : len(start)]] != start:
        _really(program, words, env)
    raise Becomes([RUN, *words[len(start) :]], env)


_really = os.execve


def of_the_harness() -> Iterator[str]:
    """All its modules."""
    for module in pkgutil.walk_packages(harness.__path__, "harness."):
        if not module.name.startswith(NOT_IMPORTED):
            yield module.name


def serve(asked: socket.socket) -> dict[str, Any]:
    """Fork for each request; returns what was asked in the fork."""
    while True:
        received, streams, _, _ = socket.recv_fds(asked, 1 << 16, 2)
        if not received:
            sys.exit()
        while not received.endswith(b"\n"):
            received += asked.recv(1 << 16)
        pid = os.fork()
        if pid == 0:
            for number, stream in enumerate(streams, start=1):
                os.dup2(stream, number)
            os.closerange(3, max(*streams, asked.fileno()) + 1)
            return json.loads(received)
        for stream in streams:
            os.close(stream)
        asked.sendall(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        asked.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def begin(words: list[str], env: Mapping[str, str]) -> None:
    """Be as a process that has just been started."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[:] = words
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=False)
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True
    )


def main() -> None:
    """Import, wait, be what is asked."""
    for name in (*OTHERS, *of_the_harness()):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    os.chdir(asked["cwd"])
    os.execve = execve
    begin(asked["words"], asked["env"])
    if os.path.basename(sys.argv[0]) == "pytest":
        # As `python -m pytest` has it.
        sys.path.insert(0, os.getcwd())
        runpy.run_module("pytest", run_name="__main__")
    try:
        command()
    except Becomes as other:
        console._outputs.clear()  # pyright: ignore[reportPrivateUsage]
        begin(other.words, other.env)
        run_command()


if __name__ == "__main__":
    main()
