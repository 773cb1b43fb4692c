"""Signals with which a command ends, when they come twice.

`timeout` of coreutils sends its signal to the command and to its process group: the second must not
kill a command that is writing its last lines.
"""

import signal
from collections.abc import AsyncIterator, Collection, Generator
from contextlib import contextmanager

import anyio


@contextmanager
def received_signals(
    numbers: Collection[signal.Signals],
) -> Generator[AsyncIterator[signal.Signals]]:
    """Yield the signals as they come. After the block, with which a process ends, ignore them."""
    with anyio.open_signal_receiver(*numbers) as signals:
        yield signals
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
