"""A process that has imported the harness, and forks a `harness …` or pytest for each request.

tests.warm_processes starts it, and sends it connections; a fork serves each. A request is a line of
JSON with the descriptors of the standard streams; the answer is the process id and, at the end, the
exit status and the number of leftover workers. A fork has the arguments, working directory,
environment, streams and signals of a started process. `harness run` replaces itself by another
program (`os.execve`), which is imported already too. The workers of a run (`-n 2`) are forks of
this process as well, which has no threads: the run requests them over a socket of its own. So the
run is not their parent; tests of dying workers rely on that.
"""

import contextlib
import gc
import importlib
import importlib.util
import os
import pkgutil
import runpy
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from _pytest.config import default_plugins

import harness
from harness import console
from harness.__main__ import main as command
from harness.cli.suite.__main__ import main as run_command
from harness.play.session.capability_prober import load_probes
from harness.protocol.spec.loading import load_book
from harness.scenario.bundled import bundled_ids_on
from harness.scenario.filler import filler_text
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION

# An environment with the wheel alone does not have the tests on its path.
sys.path.append(str(Path(__file__).parents[1]))
from tests import forks, hypothesis_tables, worker_forks

sys.path.pop()

OTHERS = (
    "_pytest._argcomplete",
    "anyio._backends._asyncio",
    "anyio._core._subprocesses",
    "anyio.pytest_plugin",
    "code",
    "faulthandler",
    "pytest",
    "typer._adapters",
    "typer.rich_utils",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.auto",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "xdist.dsession",
    "xdist.looponfail",
    "xdist.newhooks",
    "xdist.plugin",
    "xdist.remote",
    *(f"_pytest.{name}" for name in default_plugins),
)
# For tests of this project, where they have their development dependencies.
OF_DEVELOPERS = ("faker.contrib.pytest.plugin", "pytest_timeout", "respx.plugin")
# The users of Locust replace the blocking functions of their process.
NOT_IMPORTED = ("harness.report.snapshot", "harness.load.users")
RUN = "harness.cli.suite"


class Becomes(BaseException):
    """The fork must run another program instead."""

    def __init__(self, words: list[str], env: Mapping[str, str]) -> None:
        super().__init__()
        self.words = words
        self.env = dict(env)


def execve(program: str, words: list[str], env: Mapping[str, str]) -> NoReturn:
    """Replace `os.execve`: the program of `harness run` goes on in this process, others do not."""
    start = [sys.executable, "-P", "-m", RUN]
    if [program, *words[1 : len(start)]] != start:
        _really(program, words, env)
    raise Becomes([RUN, *words[len(start) :]], env)


_really = os.execve


def of_the_harness() -> Iterator[str]:
    """Yield the names of the harness's modules to import."""
    for module in pkgutil.walk_packages(harness.__path__, "harness."):
        if not module.name.startswith(NOT_IMPORTED):
            yield module.name


class Work:
    """Request for a fork: its command, environment and folder, and the socket for its workers."""

    def __init__(self, asked: dict[str, Any], workers: socket.socket | None) -> None:
        self.words: list[str] = asked["words"]
        self.env: dict[str, str] = asked["env"]
        self.cwd: str = asked["cwd"]
        self.workers = workers


def take_connections(line: socket.socket) -> socket.socket:
    """Fork for each connection that comes over `line`; return only in the forks, with theirs."""
    while True:
        received, descriptors, _, _ = socket.recv_fds(line, 1, 1)
        if not received:
            break
        assert descriptors
        if os.fork() == 0:
            line.close()
            return socket.socket(fileno=descriptors[0])
        forks.close(descriptors)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(0)


def serve(asked: socket.socket) -> Work:
    """Fork for each request; returns in the forks, with what was asked."""
    while (received := forks.receive(asked)) is not None:
        request, streams = received
        if any("fuzz" in word for word in request["words"]):
            hypothesis_tables.make_tables()
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            worker_forks.place(streams, theirs)
            # What they close later may be a descriptor of the same number.
            for one in (asked, ours, theirs):
                one.detach()
            return Work(request, socket.socket(fileno=worker_forks.KEPT))
        theirs.close()
        forks.close(streams)
        asked.sendall(b"%d\n" % pid)
        workers: set[int] = set()
        if worker := worker_forks.attend(ours, workers):
            return Work(worker, None)
        ours.close()
        _, status = os.waitpid(pid, 0)
        left = [worker for worker in workers if os.waitpid(worker, os.WNOHANG)[0] == 0]
        for worker in left:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
        asked.sendall(b"%d %d\n" % (os.waitstatus_to_exitcode(status), len(left)))
    # As in `forks.leave`, nothing is freed.
    os._exit(0)


def main() -> None:
    """Import, wait, be what is asked."""
    gc.disable()
    of_developers = [
        name for name in OF_DEVELOPERS if importlib.util.find_spec(name.partition(".")[0])
    ]
    for name in (*OTHERS, *of_developers, *of_the_harness()):
        importlib.import_module(name)
    # What a process reads once of its own files.
    load_book()
    load_probes()
    for surface in (SESSION, EXEC, COMMAND, SDK):
        bundled_ids_on(surface)
    filler_text("sentence", seed=0)
    forks.build_models()
    gc.freeze()
    gc.enable()
    work = serve(take_connections(socket.socket(fileno=int(sys.argv[1]))))
    os.chdir(work.cwd)
    os.execve = execve
    forks.begin(work.words, work.env)
    forks.leave(partial(be, work))


def be(work: Work) -> None:
    """Be what was asked for."""
    if work.workers is None:
        sys.path.insert(0, "")
        worker_forks.be_worker()
        return
    worker_forks.fork_workers(work.workers)
    if os.path.basename(sys.argv[0]) == "pytest":
        # As `python -m pytest` has it.
        sys.path.insert(0, os.getcwd())
        runpy.run_module("pytest", run_name="__main__")
    try:
        command()
    except Becomes as other:
        console._outputs.clear()  # pyright: ignore[reportPrivateUsage]
        forks.begin(other.words, other.env)
        run_command()


if __name__ == "__main__":
    main()
