"""Keys of a terminal, one at a time, without a line's end.

The terminal gives keys at once from the beginning to the end, so that none is lost that is pressed
while something is printed.
"""

import os
import select
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager

_MAX_KEY_BYTES = 32
"""So many bytes one key sends at most, such as an arrow."""


@contextmanager
def keys(terminal: int) -> Generator[Callable[[], str]]:
    """Gives a function that waits for a key; it gives "" at the end of input.

    Ctrl-C is a key like others, so that it never comes between two of our steps.
    """
    before = termios.tcgetattr(terminal)
    # Not flushed: what was typed ahead counts.
    tty.setcbreak(terminal, termios.TCSANOW)
    now = termios.tcgetattr(terminal)
    now[3] &= ~termios.ISIG
    termios.tcsetattr(terminal, termios.TCSANOW, now)
    try:
        yield lambda: _key(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _key(terminal: int) -> str:
    try:
        first = os.read(terminal, 1)
        if first == b"\x1b" or first >= b"\x80":  # The rest of the same key is there already.
            while len(first) < _MAX_KEY_BYTES and select.select([terminal], [], [], 0)[0]:
                first += os.read(terminal, 1)
    except OSError:
        return ""
    return first.decode("utf-8", "replace")
