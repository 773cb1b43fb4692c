"""One run of the agent as a child process: its pipes, its exit, and ending it.

The child is reaped last: until then no other process can take its id or its group's id.
"""

import _thread
import asyncio
import atexit
import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable

from agent_sdk import tree
from agent_sdk.tree import Tree

LINGER_SECONDS = 5.0
"""Seconds that the agent has to exit after its turn ended or it closed its output."""
CHUNK = 1 << 16
MAX_STDERR_BYTES = 1 << 16
"""Bytes kept from the end of standard error: at least this many, at most twice."""
_unfinished: set["Process"] = set()


class Interrupted(Exception):
    """Reading was stopped because the agent did not exit in time after its turn."""


class Process:
    """A running agent. Threads other than that of its event loop call `abandon` and `bury` only."""

    def __init__(
        self, child: "subprocess.Popen[bytes]", prompt: bytes, clean_up: Callable[[], None]
    ) -> None:
        assert child.stdin
        assert child.stdout
        assert child.stderr
        self._child = child
        self._clean_up = clean_up
        self._owner = os.getpid()
        self._tree = Tree(child.pid)
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._waiting: set[asyncio.Future[None]] = set()
        self._interrupt: Exception | None = None
        self._errors = bytearray()
        self._cut = False
        self._timer: asyncio.TimerHandle | None = None
        self.done = False
        """True once the process and its descendants are gone."""
        for pipe in (child.stdin, child.stdout, child.stderr):
            os.set_blocking(pipe.fileno(), False)
        _unfinished.add(self)
        self._pumps = [
            asyncio.create_task(self._write(child.stdin.fileno(), prompt)),
            asyncio.create_task(self._keep_errors(child.stderr.fileno())),
        ]
        threading.Thread(target=self._watch, daemon=True, name="agent_sdk exit").start()

    @property
    def turn_ended(self) -> bool:
        """Return whether `end_turn` was called; the agent may then exit by itself."""
        return self._timer is not None

    def end_turn(self) -> None:
        """Record the end of the turn; `read` raises Interrupted after LINGER_SECONDS."""
        if self._timer is None:
            self._timer = self._loop.call_later(LINGER_SECONDS, self.interrupt, Interrupted())

    @property
    def exit_status(self) -> int | None:
        """The exit status, negative for a signal's number; None until the child is reaped."""
        return self._child.returncode

    def errors(self) -> tuple[bytes, bool]:
        """Return the last part of standard error, and whether earlier bytes were dropped."""
        return bytes(self._errors), self._cut

    def _watch(self) -> None:
        """Wait for the exit, in a thread; without reaping if the system has `waitid`."""
        with contextlib.suppress(ChildProcessError):
            if hasattr(os, "waitid"):
                os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
            else:
                self._child.wait()
        with contextlib.suppress(RuntimeError):  # the loop may be closed
            self._loop.call_soon_threadsafe(self._on_exit)

    def _on_exit(self) -> None:
        self._exited.set()
        self._wake()

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def interrupt(self, error: Exception) -> None:
        """Make a waiting `read` and all later ones raise `error`, or that of the first call."""
        self._interrupt = self._interrupt or error
        self._wake()

    async def read(self) -> bytes:
        """Return the next bytes of standard output, b"" at its end. Raises `interrupt`'s error."""
        return await self._read(self._stdout, lambda: self._interrupt)

    @property
    def _stdout(self) -> int:
        assert self._child.stdout
        return self._child.stdout.fileno()

    async def _read(self, pipe: int, interrupted: Callable[[], Exception | None]) -> bytes:
        # A child that never stops writing must not stop all other tasks.
        await asyncio.sleep(0)
        while True:
            if error := interrupted():
                raise error
            # All output of the child is readable once its exit is known. Its descendants may
            # keep the pipe open for longer, so do not wait for the end of the file.
            exited = self._exited.is_set()
            try:
                return os.read(pipe, CHUNK)
            except BlockingIOError:
                if exited:
                    return b""
            await self._ready(pipe, self._loop.add_reader, self._loop.remove_reader)

    async def _ready(
        self,
        pipe: int,
        add: Callable[..., object],
        remove: Callable[[int], object],
    ) -> None:
        """Wait until a pipe is ready, the child has exited, or `interrupt` is called."""
        future = self._loop.create_future()
        self._waiting.add(future)
        add(pipe, lambda: future.done() or future.set_result(None))
        try:
            if not self._exited.is_set():
                await future
        finally:
            remove(pipe)
            self._waiting.discard(future)

    async def _write(self, pipe: int, prompt: bytes) -> None:
        """Write the prompt and close the pipe; errors are ignored, as the child reports its own."""
        rest = memoryview(prompt)
        try:
            while rest and not self._exited.is_set():
                try:
                    rest = rest[os.write(pipe, rest[:CHUNK]) :]
                except BlockingIOError:
                    await self._ready(pipe, self._loop.add_writer, self._loop.remove_writer)
        except OSError:
            pass
        finally:
            assert self._child.stdin
            self._child.stdin.close()

    async def _keep_errors(self, pipe: int) -> None:
        try:
            while data := await self._read(pipe, lambda: None):
                self._errors += data
                if len(self._errors) > 2 * MAX_STDERR_BYTES:
                    self._cut = True
                    del self._errors[:-MAX_STDERR_BYTES]
        finally:
            assert self._child.stderr
            self._child.stderr.close()

    async def exits_within(self, seconds: float) -> bool:
        """Wait for the exit, discarding further output; return whether the child exited."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self._read(self._stdout, lambda: None):
                    pass
                await self._exited.wait()
        return self._exited.is_set()

    async def end(self) -> None:
        """Let the agent exit if its turn has ended, else end it with its descendants; reap it."""
        if self.done:
            return
        try:
            if not (self.turn_ended and await self.exits_within(LINGER_SECONDS)):
                await self._end_tree()
            await asyncio.wait(self._pumps, timeout=tree.KILL_SECONDS)
        except asyncio.CancelledError:
            # The event loop is about to close: no time for SIGTERM.
            self._tree.kill()
            raise
        finally:
            self._finish()

    async def finish(self) -> None:
        """Reap a child that exited by itself, else `end` it. Descendants of an exited one stay."""
        if not self._exited.is_set():
            await self.end()
            return
        try:
            await asyncio.wait(self._pumps)
        finally:
            self._finish()

    async def _end_tree(self) -> None:
        drain = asyncio.create_task(self.exits_within(tree.GRACE_SECONDS + tree.KILL_SECONDS))
        try:
            for seconds in self._tree.steps(tree.GRACE_SECONDS):
                await asyncio.sleep(seconds)
        finally:
            drain.cancel()
            await asyncio.gather(drain, return_exceptions=True)

    def _finish(self) -> None:
        if self.done:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(tree.KILL_SECONDS)
        leftovers = [*self._pumps, self._timer] if self._timer else self._pumps
        for leftover in leftovers:
            # The loop may be closed if the child was abandoned.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(leftover.cancel)
        assert self._child.stdout
        self._child.stdout.close()
        if self._loop.is_closed():
            for pipe in (self._child.stdin, self._child.stderr):
                assert pipe
                pipe.close()
        self.done = True
        _unfinished.discard(self)
        self._clean_up()

    async def wait_until_done(self) -> None:
        """Wait until `done`, but no longer than an ending can take."""
        deadline = time.monotonic() + LINGER_SECONDS + tree.GRACE_SECONDS + 2 * tree.KILL_SECONDS
        # Another thread or event loop may end the process, so poll.
        while not self.done and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def abandon(self) -> None:
        """End the process in a new thread. May be called from any thread and the collector."""
        # Not `threading`: the collector may run while one of its locks is held.
        if not self.done:
            with contextlib.suppress(RuntimeError):  # the interpreter ends: `_bury_all` does it
                _thread.start_new_thread(self.bury, ())

    def bury(self) -> None:
        """End the process, blocking: SIGTERM, then SIGKILL. Do nothing in a forked copy of us."""
        if self.done or self._owner != os.getpid():
            return
        deadline = time.monotonic() + LINGER_SECONDS
        while (
            self.turn_ended
            and time.monotonic() < deadline
            and self._child.pid in self._tree.alive()
        ):
            time.sleep(0.01)
        for seconds in self._tree.steps(tree.GRACE_SECONDS):
            # A full pipe could keep it from exiting.
            with contextlib.suppress(OSError, ValueError):
                while os.read(self._stdout, CHUNK):
                    pass
            time.sleep(seconds)
        self._finish()


@atexit.register
def _bury_all() -> None:
    for process in list(_unfinished):
        process.bury()
