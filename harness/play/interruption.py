"""Ctrl-C, TERM and HUP: the run stops at once, and the results so far are still reported.

The first signal ends the wait for a server (`wait`), and no other work of the harness: judging,
ending the server and writing the report are short, and are finished. A test of the user that is
running is interrupted as pytest does it. The second signal ends every process that the harness
started, and then this one, without a report.

The controller informs the workers, whichever process got the signal: a terminal sends it to all of
them, `kill` to one. So a worker only stops playing; it ignores a second signal.
"""

import contextlib
import os
import select
import shutil
import signal
import stat
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Protocol, TypeVar

import psutil

from harness.client.target.process_tree import NO_ANSWER, kill_processes_of
from harness.console import exit_quietly

T = TypeVar("T")
Role = Literal["alone", "controller", "worker"]

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DEFAULT_HANDLERS = (signal.default_int_handler, signal.SIG_DFL, exit_quietly)
_NOTICE = b"interrupted: ending the server; again to kill\n"
# `timeout` signals the process and its group: two signals this close together count as one.
SAME_SIGNAL_SECONDS = 0.5


class Interrupted(KeyboardInterrupt):
    """Exception for a wait that a signal ended."""


class Waiter(Protocol):
    """Object that waits for the results of asynchronous calls."""

    def wait(self, future: Future[T]) -> T:
        """Return the result. Raises `Interrupted`, and cancels the call, at a signal."""
        ...


class Interruption:
    """The signals of one process; before `install` none is handled.

    `on_signal` is called in the signal handler, with the first signal, before its notice is
    printed; `make_exception` makes the exception to raise when the harness neither waits nor does
    other work.
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
        """Return the signal's name, "" before there is one."""
        return signal.Signals(self.signal).name if self.signal else ""

    @property
    def status(self) -> int:
        """Return the exit status for the signal, as shells have it."""
        return 128 + self.signal

    def install(self) -> None:
        """Handle the signals from here on, except those that are ignored or handled otherwise."""
        if threading.current_thread() is not threading.main_thread():
            return
        with contextlib.suppress(OSError):
            # A duplicate: during a play pytest captures the original.
            self._stderr = os.dup(2)
        for number in HANDLED:
            if signal.getsignal(number) in _DEFAULT_HANDLERS:
                self._old_handlers[number] = signal.signal(number, self._handle)

    def remove(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._old_handlers.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, handler)
        self._old_handlers.clear()
        if self._stderr >= 0:
            os.close(self._stderr)
            self._stderr = -1

    @contextlib.contextmanager
    def defer_signals(self) -> Generator[None]:
        """Make signals in the block interrupt only a wait, not our own work."""
        before, self._is_deferring = self._is_deferring, True
        try:
            yield
        finally:
            self._is_deferring = before

    def wait(self, future: Future[T]) -> T:
        """Return the result of a future. Raises `Interrupted`, and cancels it, at a signal."""
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
            if (
                self.role != "worker"
                and time.monotonic() - self._signalled_at > SAME_SIGNAL_SECONDS
            ):
                end_everything(self._base)
                os._exit(128 + number)
            return
        self.signal, self._signalled_at = number, time.monotonic()
        if number == signal.SIGHUP:
            _replace_lost_terminal()
        if self.on_signal is not None:
            self.on_signal(number)
        self._print_notice()
        if self._is_waiting:
            raise Interrupted(self.name)
        if self.role == "alone" and not self._is_deferring:
            raise self.make_exception()

    def _print_notice(self) -> None:
        """Print a notice if standard error is open; in a worker the controller does."""
        if self.role != "worker" and self._stderr >= 0:
            with contextlib.suppress(OSError):
                # A terminal's cursor is in the middle of a line, after dots or ^C.
                os.write(self._stderr, b"\n" * os.isatty(self._stderr) + _NOTICE)


def _replace_lost_terminal() -> None:
    """Redirect descriptors of a closed terminal to /dev/null: errors would end the run."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/dev/fd"):
        # The folder's own descriptor is listed, and closed by now.
        with contextlib.suppress(OSError):
            if stat.S_ISCHR(os.fstat(int(name)).st_mode) and _is_hung_up(int(name)):
                os.dup2(nowhere, int(name))
    os.close(nowhere)


def _is_hung_up(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


_DEATH_SECONDS = 2.0
_EMPTY_LOOKS, _MAX_LOOKS = 2, 20


def end_everything(base: Path) -> None:
    """Kill every process that this one started, and remove their folders below `base`."""
    family: list[psutil.Process] = []
    with contextlib.suppress(*NO_ANSWER):
        family = psutil.Process().children(recursive=True)
    own_ids = {str(os.getpid()), *(str(process.pid) for process in family)}
    for process in family:
        with contextlib.suppress(*NO_ANSWER):
            process.kill()
    # As long as a worker exists, it can start another server.
    psutil.wait_procs(family, timeout=_DEATH_SECONDS)
    runs = base / "run"
    folders = [
        folder
        for folder in (runs.glob("*-*") if runs.is_dir() else ())
        if folder.name.split("-", 1)[0] in own_ids
    ]
    # A server that is being started cannot be recognized before its program runs.
    empty = 0
    for _ in range(_MAX_LOOKS):
        empty = 0 if sum(kill_processes_of(folder.name) for folder in folders) else empty + 1
        if empty == _EMPTY_LOOKS:
            break
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
