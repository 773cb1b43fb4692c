"""Set-up and end of a long-running command's process: log, helper process, signals, threads."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from reference_server.config.model import Config
from reference_server.sandbox.launcher import SHARED, LaunchFailed

if TYPE_CHECKING:
    from reference_server.model.secrets import Secrets

LOG_LINE = "agent: %(message)s"
THREADS_END = 1.0
"""Seconds that worker threads have to end after the server has."""


class FirstSignal:
    """Calls a function with the first of some signals, and ignores those after it.

    A stream of signals would leave no time for the orderly end. The handlers of asyncio's loop are
    not used: when one is taken away, the default stands for a moment, and a signal that another
    thread receives then kills the process.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = frozenset(numbers)
        self._stop_waiting: Callable[[], None] = _take_no_action

    def call(self, function: Callable[[int], None]) -> None:
        """Call `function` in the running loop with the number of the first signal."""
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        loop = asyncio.get_running_loop()

        def on_signal() -> None:
            came = [number for number in reader.recv(1024) if number in self._numbers]
            if came:
                self.ignore()
                function(came[0])

        def stop_waiting() -> None:
            signal.set_wakeup_fd(-1)
            loop.remove_reader(reader)
            reader.close()
            writer.close()

        # Python writes the number of each signal to it, also of one that comes just before the
        # loop waits, which a handler alone would not wake.
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        loop.add_reader(reader, on_signal)
        self._stop_waiting = stop_waiting
        for number in self._numbers:
            signal.signal(number, _take_no_action)

    def ignore(self) -> None:
        """Ignore the signals from now on, also those that have just come."""
        _hide_late_signals()
        for number in self._numbers:
            signal.signal(number, signal.SIG_IGN)
        self._stop_waiting()
        self._stop_waiting = _take_no_action


def _take_no_action(*_: object) -> None:
    """Do nothing with a signal."""


def _hide_late_signals() -> None:
    """Let Python not report a signal that another thread received just before it was ignored."""
    report = sys.unraisablehook

    def report_others(what: "sys.UnraisableHookArgs") -> None:
        if not (isinstance(what.exc_value, OSError) and "race condition" in str(what.exc_value)):
            report(what)

    sys.unraisablehook = report_others


def begin_log() -> None:
    """Write warnings and errors of this process to standard error."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=LOG_LINE)


def without_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return an error message with PROVIDER_API_KEY and passwords in addresses redacted."""
    from reference_server.model.secrets import Secrets

    return Secrets.of_config(Config(environment=dict(environment))).redact(text)


def hide_secrets_in_log(config: Config) -> None:
    """Redact keys and passwords in all later lines of the log, tracebacks included.

    Control characters are escaped too: the log quotes MCP servers, models and files.
    """
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_HidingFormatter(config))


class _HidingFormatter(logging.Formatter):
    """Log formatter that redacts the secrets of the configuration."""

    def __init__(self, config: Config) -> None:
        super().__init__(LOG_LINE)
        self._config = config
        self._secrets: Secrets | None = None

    def format(self, record: logging.LogRecord) -> str:
        # Imported with the first log line: most servers write none.
        from reference_server.model.secrets import Secrets
        from reference_server.terminal_escapes import escape_controls

        self._secrets = self._secrets or Secrets.of_config(self._config)
        return escape_controls(self._secrets.redact(super().format(record)))


def start_helper() -> None:
    """Start the helper process, which launches commands, so that it does not appear in a turn.

    A failure is logged.
    """
    try:
        SHARED.start()
    except LaunchFailed as error:
        # Not fatal: the first command that needs it reports the failure.
        logging.getLogger(__name__).warning("%s", error)


def leave_hung_threads(status: int = 0) -> None:
    """End the process at once if a worker thread does not end within `THREADS_END`.

    The thread may wait for a disk that does not answer, or for a lock of another process, and the
    interpreter would wait for it without limit. Returns if all threads have ended.
    """
    deadline = time.monotonic() + THREADS_END
    current = threading.current_thread()
    threads = [thread for thread in threading.enumerate() if thread is not current]
    for thread in threads:
        if not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() and not thread.daemon for thread in threads):
        SHARED.close()
        logging.shutdown()
        os._exit(status)
