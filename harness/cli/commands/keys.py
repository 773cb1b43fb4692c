"""Single key presses of a terminal, read without waiting for Enter.

The terminal stays in this mode throughout, so that no key pressed during output is lost.
"""

import os
import select
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager

# An arrow key sends several bytes.
_MAX_KEY_BYTES = 32


@contextmanager
def keys(terminal: int) -> Generator[Callable[[], str]]:
    """Yield a function that waits for a key and returns it, "" at the end of input.

    Ctrl-C is read as a key, so that it never interrupts half-way.
    """
    before = termios.tcgetattr(terminal)
    # TCSANOW does not flush: keys typed ahead count.
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
