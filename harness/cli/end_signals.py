"""Signals with which a command ends, when they come twice.

`timeout` of coreutils sends its signal to the command and to its process group: the second must not
kill a command that is writing its last lines.
"""

import signal
import socket
import sys
from collections.abc import AsyncIterator, Collection, Generator
from contextlib import contextmanager

import anyio


@contextmanager
def received_signals(
    numbers: Collection[signal.Signals],
) -> Generator[AsyncIterator[signal.Signals]]:
    """Yield the signals as they come. After the block, with which a process ends, ignore them.

    `anyio.open_signal_receiver` would restore the default handlers in between, and a signal that
    another thread receives at that moment would kill the process. Nothing in the block may set
    handlers of asyncio's loop, as prompt_toolkit does: they take the wake-up descriptor.
    """
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, _take_no_action)
        try:
            yield _signals(reader, numbers)
        finally:
            _hide_late_signals()
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)
            signal.set_wakeup_fd(-1)


async def _signals(
    reader: socket.socket, numbers: Collection[signal.Signals]
) -> AsyncIterator[signal.Signals]:
    while True:
        await anyio.wait_readable(reader)
        for number in reader.recv(1024):
            if number in numbers:
                yield signal.Signals(number)


def _take_no_action(*_: object) -> None:
    """Handle a signal: Python has written its number to the wake-up descriptor."""


def _hide_late_signals() -> None:
    """Let Python not report a signal that another thread received just before it was ignored."""
    report = sys.unraisablehook

    def report_others(what: "sys.UnraisableHookArgs") -> None:
        if not (isinstance(what.exc_value, OSError) and "race condition" in str(what.exc_value)):
            report(what)

    sys.unraisablehook = report_others
