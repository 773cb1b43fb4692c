"""Workers of xdist as forks of a process that has imported what they import.

That process has no threads and forks for each request, which comes over a socket (`attend`). A run
of pytest asks for its workers there instead of starting them (`fork_workers`).
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from execnet import gateway_io
from execnet.gateway_base import ExecModel, Popen2IO

from tests import forks

KEPT = 3
"""The descriptor by which a run asks for workers."""


def place(streams: Sequence[int], kept: socket.socket | None) -> None:
    """Put the streams where a process has them, and close what else is open."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    if kept:
        os.dup2(kept.fileno(), KEPT, inheritable=False)
    os.closerange(KEPT + 1 if kept else KEPT, os.sysconf("SC_OPEN_MAX"))


def attend(run: socket.socket, workers: set[int]) -> dict[str, Any] | None:
    """Fork the workers of a run, and wait for them, until it ends; return in them the request."""
    while (received := forks.receive(run)) is not None:
        request, streams = received
        if "ended" in request:
            _, status = os.waitpid(request["ended"], 0)
            workers.discard(request["ended"])
            run.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            continue
        pid = os.fork()
        if pid == 0:
            place(streams, None)
            return request
        forks.close(streams)
        workers.add(pid)
        run.sendall(b"%d\n" % pid)
    return None


def be_worker() -> None:
    """Be what execnet starts as a worker."""
    exec(gateway_io.popen_bootstrapline, {"__name__": "__main__"})


class Worker:
    """A worker of this run: what execnet and the harness ask of a `subprocess.Popen`."""

    asking = threading.Lock()

    def __init__(self, workers: socket.socket) -> None:
        self._workers = workers
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        work = {"words": ["-c"], "cwd": os.getcwd(), "env": dict(os.environ)}
        self.pid = self._ask(work, [theirs_in, theirs_out, 2])
        forks.close([theirs_in, theirs_out])
        self.stdin, self.stdout = os.fdopen(ours_in, "wb"), os.fdopen(ours_out, "rb")

    def _ask(self, request: Mapping[str, Any], streams: Sequence[int] = ()) -> int:
        with self.asking:
            forks.send(self._workers, request, streams)
            answer = b""
            while not answer.endswith(b"\n"):
                received = self._workers.recv(64)
                if not received:
                    raise EOFError("the process that forks workers has ended")
                answer += received
        return int(answer)

    def wait(self) -> int:
        """Its exit status."""
        return self._ask({"ended": self.pid})

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def fork_workers(workers: socket.socket) -> None:
    """Have the workers of xdist forked instead of started."""

    class Forked(gateway_io.Popen2IOMaster):
        def __init__(self, args: list[str], execmodel: ExecModel) -> None:
            assert args == [sys.executable, "-u", "-c", gateway_io.popen_bootstrapline]
            self.popen = Worker(workers)
            Popen2IO.__init__(self, self.popen.stdin, self.popen.stdout, execmodel)

    gateway_io.Popen2IOMaster = Forked
