"""Worker processes of a search: they get jobs as lines of JSON, and answer each with a line.

A worker and all that it started are killed at the end of its block.
"""

import base64
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import replace
from typing import Any

import anyio
import psutil
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from harness.client.target.lost_input import ignore_lost_input
from harness.client.target.process_tree import NO_ANSWER
from harness.client.target.run_folders import base_folder
from harness.errors import HarnessError
from harness.play.config import Config
from harness.protocol.spec.loading import load_book
from harness.report.progress.log import SILENT

# Far more than an answer needs.
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
# Bound of a job; the plays in it have bounds of their own.
MAX_JOB_SECONDS = 90.0
# Seconds for a worker to end its processes.
END_SECONDS = 10.0
# Workers lost in a row at their first job, after which the run fails.
MAX_LOST_WORKERS = 3


class WorkerLost(HarnessError):
    """Error: a worker ended, or did not answer in time."""


def encode_config(config: Config) -> str:
    """Return the options of a run as ASCII text, for a worker of the same version."""
    # The schemas of the book cannot be pickled; the worker loads its own. Its plays are counted by
    # the controller.
    bare = replace(config, book=None, progress=None)  # pyright: ignore[reportArgumentType]
    return base64.b64encode(pickle.dumps(bare)).decode()


def decode_config(text: str) -> Config:
    """Return the options of a run that `encode_config` encoded, with this machine's folder."""
    bare = pickle.loads(base64.b64decode(text))
    return replace(bare, book=load_book(), base=base_folder(), progress=SILENT)


class WorkerProcess:
    """One worker. Made by `worker_process`."""

    def __init__(self, process: Process) -> None:
        if process.stdout is None:
            raise RuntimeError("a worker without its output")
        self.process = process
        self._answers = BufferedByteReceiveStream(process.stdout)

    async def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message as one line. Raises `WorkerLost` if the worker has ended."""
        if self.process.stdin is None:
            raise RuntimeError("a worker without its input")
        try:
            await self.process.stdin.send(json.dumps(message).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise WorkerLost("the worker ended") from error

    async def ask(
        self, job: Mapping[str, Any], bound: float | None = MAX_JOB_SECONDS
    ) -> dict[str, Any]:
        """Send a job and return its answer. Raises `WorkerLost` if none comes in time."""
        await self.tell(job)
        try:
            with anyio.fail_after(bound):
                return await self.receive()
        except TimeoutError as error:
            raise WorkerLost(f"the worker gave no answer within {bound:g} s") from error

    async def receive(self) -> dict[str, Any]:
        """Return the next answer. Raises `WorkerLost` if the worker ends before it."""
        try:
            line = await self._answers.receive_until(b"\n", _MAX_ANSWER_BYTES)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError) as error:
            raise WorkerLost("the worker ended") from error
        except anyio.DelimiterNotFound as error:
            raise WorkerLost(f"the worker's answer has over {_MAX_ANSWER_BYTES} bytes") from error
        return json.loads(line)


@asynccontextmanager
async def worker_process(
    first: Mapping[str, Any], module: str = "harness.search.mutation.worker"
) -> AsyncGenerator[WorkerProcess]:
    """Start a worker, the program `module`, and send it its first message.

    It is killed at the end of the block. Raises `WorkerLost` if it ends at once.
    """
    # In a session of its own, so that Ctrl-C in a terminal reaches only the controller.
    command = [sys.executable, "-P", "-m", module]
    ignore_lost_input()
    process = await anyio.open_process(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
        start_new_session=True,
    )
    worker = WorkerProcess(process)
    try:
        await worker.tell(first)
        yield worker
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


class ReplacedWorker:
    """A worker that is started when it is needed, and replaced by another after it was lost.

    `stack` ends the last one.
    """

    def __init__(
        self, open_worker: Callable[[], AbstractAsyncContextManager[Any]], stack: AsyncExitStack
    ) -> None:
        self._open = open_worker
        self._stack = stack
        self._worker: Any = None
        self._jobs_done = self._lost_at_once = 0

    async def start(self) -> None:
        """Start a worker unless one runs. Raises `WorkerLost` if it ends at once."""
        if self._worker is None:
            self._worker, self._jobs_done = await self._stack.enter_async_context(self._open()), 0

    async def ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Send a job and return its answer. Raises `WorkerLost` if none comes in time."""
        answer = await self._worker.ask(job)
        self._jobs_done, self._lost_at_once = self._jobs_done + 1, 0
        return answer

    async def end(self, reason: WorkerLost, *, is_needed: bool) -> None:
        """End the lost worker.

        If another `is_needed`, raises `WorkerLost` after several in a row were lost at their first
        job.
        """
        self._worker = None
        await self._stack.aclose()
        self._lost_at_once += not self._jobs_done
        if is_needed and self._lost_at_once == MAX_LOST_WORKERS:
            raise WorkerLost(f"{MAX_LOST_WORKERS} workers, one after the other: {reason}")


async def _end(process: Process) -> None:
    """Let the worker end its processes; then kill those that are left."""
    family = _family(process.pid)
    if process.stdin is not None:
        # A waiting worker notices the end of its input, a busy one only the signal.
        with suppress(OSError, anyio.BrokenResourceError):
            await process.stdin.aclose()
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    with anyio.move_on_after(END_SECONDS):
        await process.wait()
    for child in {*family, *_family(process.pid)}:
        with suppress(*NO_ANSWER):
            child.kill()
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    await process.aclose()


def _family(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except NO_ANSWER:
        return []
