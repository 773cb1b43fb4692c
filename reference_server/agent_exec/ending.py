"""End of a run: exit status and interruption.

The specification shows no exit statuses of commands; docs/exec.md has the table of these.
"""

import errno
import logging
import os
import signal

import anyio

_log = logging.getLogger(__name__)

COMPLETED = 0
FAILED = 1
"""The turn failed or could not begin: a bad setting, no prompt, no repository, unknown thread."""
WRONG_USAGE = 2
"""The command line is wrong; nothing was done and no event was sent."""
NOT_READ = 128 + signal.SIGPIPE
"""The reader of the output has closed it."""

_NO_READER = (errno.EPIPE, errno.ECONNRESET, errno.EIO)
"""Errors of an output without a reader; EIO of a closed terminal."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NotBegun(Exception):
    """The run could not begin, and no event was sent; str() is one line for standard error."""

    status = FAILED


class WrongUsage(NotBegun):
    """The command line is wrong."""

    status = WRONG_USAGE


class Interruption:
    """Request to stop the run, by a signal, of which the first counts, or by closed output."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.output_gone = False
        self._output_failed = False
        self.stop_requested = anyio.Event()

    def stop_by_signal(self, number: int) -> None:
        """Request a stop because of a signal."""
        if self.number is None:
            self.number = number
        self.stop_requested.set()

    def stop_by_closed_output(self, cause: BaseException | None = None) -> None:
        """Request a stop because the output is closed or unwritable; `cause` is the error."""
        self.output_gone = True
        if isinstance(cause, OSError) and cause.errno not in _NO_READER:
            self._output_failed = True
            _log.error("standard output cannot be written: %s", cause.strerror)
        self.stop_requested.set()

    def reason(self) -> str:
        """Return the message that the turn was interrupted, with the name of the signal, if any."""
        if self.number is None:
            return "the turn was interrupted"
        return f"the turn was interrupted by {signal.Signals(self.number).name}"

    def status(self) -> int | None:
        """Return the exit status of a run that was stopped, else None."""
        if self.number is not None:
            return 128 + self.number
        if self.output_gone:
            return FAILED if self._output_failed else NOT_READ
        return None


def end_at_once_on_signals() -> None:
    """Let signals end the process silently, until the run sets other handlers.

    A signal that is ignored from the start (nohup) stays ignored.
    """

    def end(number: int, _frame: object) -> None:
        os._exit(128 + number)

    for number in stop_signals():
        signal.signal(number, end)


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop a run, without those that this process ignores."""
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
