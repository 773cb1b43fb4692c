"""The end of a run: its exit status, and what interrupted it.

Source: the exit statuses of commands are not shown in the document; docs/exec.md has this table.
"""

import errno
import logging
import os
import signal

import anyio

_log = logging.getLogger(__name__)

COMPLETED = 0
FAILED = 1
"""The turn failed, or could not begin after the thread was told."""
NOT_BEGUN = 2
"""Nothing was done and nothing told: wrong usage, a setting, no prompt, an unknown thread."""
NOT_READ = 128 + signal.SIGPIPE
"""Nobody reads the output any more."""

_NO_READER = (errno.EPIPE, errno.ECONNRESET, errno.EIO)
"""EIO: the terminal was closed."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NotBegun(Exception):
    """Nothing was done and nothing told; str() is one line for standard error."""


class Interruption:
    """The signal that told the run to stop, if any; the first one counts."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.output_gone = False
        self._output_failed = False
        self.told = anyio.Event()

    def by_signal(self, number: int) -> None:
        """Stop because of a signal."""
        if self.number is None:
            self.number = number
        self.told.set()

    def by_closed_output(self, cause: BaseException | None = None) -> None:
        """Stop because nobody reads any more, or nothing can be written: `cause` tells which."""
        self.output_gone = True
        if isinstance(cause, OSError) and cause.errno not in _NO_READER:
            self._output_failed = True
            _log.error("standard output cannot be written: %s", cause.strerror)
        self.told.set()

    def why(self) -> str:
        """Say what interrupted the turn."""
        if self.number is None:
            return "the turn was interrupted"
        return f"the turn was interrupted by {signal.Signals(self.number).name}"

    def status(self) -> int | None:
        """Return the exit status of a run that was told to stop; None for one that was not."""
        if self.number is not None:
            return 128 + self.number
        if self.output_gone:
            return FAILED if self._output_failed else NOT_READ
        return None


def end_at_once_on_signals() -> None:
    """Let signals end the process, without a word, as long as nothing was done.

    A signal that whoever started this one ignores (nohup) stays ignored.
    """

    def end(number: int, _frame: object) -> None:
        os._exit(128 + number)

    for number in heeded_signals():
        signal.signal(number, end)


def heeded_signals() -> list[signal.Signals]:
    """Return the signals that stop a run, but for those that are ignored."""
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
