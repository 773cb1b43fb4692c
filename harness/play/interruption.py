"""Ctrl-C and TERM: the run stops at once, and what was judged until then is still reported.

The first signal ends the wait for a server (`wait`), and nothing else of ours: judging, ending the
server and writing the report are short, and are finished. Where somebody else's test is running, it
is interrupted as pytest does it. The second signal ends everything that we started, and then this
process, without a report.

Workers are told by the controller, whoever sent the signal to whom: a terminal sends it to all of
them, `kill` to one. So a worker only stops playing; a second signal means nothing to it.
"""

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Protocol, TypeVar

import psutil

from harness.client.target.process import kill_processes_of
from harness.console import exit_quietly

T = TypeVar("T")
Role = Literal["alone", "controller", "worker"]

HANDLED = (signal.SIGINT, signal.SIGTERM)
_DEFAULT_HANDLERS = (signal.default_int_handler, signal.SIG_DFL, exit_quietly)
_NOTICE = b"interrupted: ending the server; again to kill\n"
# `timeout` sends its signal to the process and to the group: within so many seconds it is one.
SAME_SIGNAL_SECONDS = 0.5


class Interrupted(KeyboardInterrupt):
    """The wait for a server was ended by a signal."""


class Waiter(Protocol):
    """Waits for something asynchronous."""

    def wait(self, future: Future[T]) -> T:
        """Return the result; a signal cancels it. Raises `Interrupted`."""
        ...


class Interruption:
    """The state of one process. Without `install` it only waits.

    `told` is called in the signal handler, with the first signal; `outside` makes what is raised
    where neither a wait nor anything else of ours is going on.
    """

    def __init__(self, base: Path) -> None:
        self.signal = 0
        self.role: Role = "alone"
        self.on_signal: Callable[[int], None] | None = None
        self.make_exception: Callable[[], BaseException] = KeyboardInterrupt
        self._base = base
        self._is_waiting = self._is_deferring = False
        self._signalled_at = 0.0
        self._stderr = -1
        self._old_handlers: dict[signal.Signals, Any] = {}

    @property
    def name(self) -> str:
        """The signal's name, "" where none came."""
        return signal.Signals(self.signal).name if self.signal else ""

    @property
    def status(self) -> int:
        """The exit status that tells of it: as shells do."""
        return 128 + self.signal

    def install(self) -> None:
        """Handle the signals from here on, those that are ignored or handled by others left out."""
        if threading.current_thread() is not threading.main_thread():
            return
        with contextlib.suppress(OSError):
            # Of its own: while something is played, pytest keeps what is written to it.
            self._stderr = os.dup(2)
        for number in HANDLED:
            if signal.getsignal(number) in _DEFAULT_HANDLERS:
                self._old_handlers[number] = signal.signal(number, self._handle)

    def remove(self) -> None:
        """Handle them as before."""
        for number, handler in self._old_handlers.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, handler)
        self._old_handlers.clear()
        if self._stderr >= 0:
            os.close(self._stderr)
            self._stderr = -1

    @contextlib.contextmanager
    def defer_signals(self) -> Generator[None]:
        """Note signals during work of ours, and break off nothing but a wait."""
        before, self._is_deferring = self._is_deferring, True
        try:
            yield
        finally:
            self._is_deferring = before

    def wait(self, future: Future[T]) -> T:
        """The result of something asynchronous; a signal cancels it. Raises `Interrupted`."""
        try:
            self._is_waiting = True
            if self.signal:
                raise Interrupted(self.name)
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
        finally:
            self._is_waiting = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            if self.role != "worker" and time.monotonic() - self._signalled_at > SAME_SIGNAL_SECONDS:
                end_everything(self._base)
                os._exit(128 + number)
            return
        self.signal, self._signalled_at = number, time.monotonic()
        self._say()
        if self.on_signal is not None:
            self.on_signal(number)
        if self._is_waiting:
            raise Interrupted(self.name)
        if self.role == "alone" and not self._is_deferring:
            raise self.make_exception()

    def _say(self) -> None:
        """Print nothing if nobody reads it, or in a worker; the controller reports it."""
        if self.role != "worker" and self._stderr >= 0:
            with contextlib.suppress(OSError):
                # A terminal is in the middle of a line, behind dots or ^C.
                os.write(self._stderr, b"\n" * os.isatty(self._stderr) + _NOTICE)


_DEATH_SECONDS = 2.0
_EMPTY_LOOKS, _MAX_LOOKS = 2, 20


def end_everything(base: Path) -> None:
    """Kill every process that this one started, and remove their folders."""
    family = psutil.Process().children(recursive=True)
    ours = {str(os.getpid()), *(str(one.pid) for one in family)}
    for one in family:
        with contextlib.suppress(psutil.Error):
            one.kill()
    # Until then a worker can start another server.
    psutil.wait_procs(family, timeout=_DEATH_SECONDS)
    runs = base / "run"
    folders = [
        folder
        for folder in (runs.glob("*-*") if runs.is_dir() else ())
        if folder.name.split("-", 1)[0] in ours
    ]
    # A server that was just being started bears no mark before it is the server's program.
    empty = 0
    for _ in range(_MAX_LOOKS):
        empty = 0 if sum(kill_processes_of(folder.name) for folder in folders) else empty + 1
        if empty == _EMPTY_LOOKS:
            break
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
