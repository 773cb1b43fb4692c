"""How the rest of the server is imported while the first requests may already come.

Here lives what the interpreter is told meanwhile. What is imported, and when, is `server`'s and
`parts`' matter.
"""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

SWITCH = 0.0005
"""Seconds after which a thread that imports lets the event loop go on, which has requests."""
_USUAL_SWITCH = sys.getswitchinterval()


@contextmanager
def importing() -> Generator[None]:
    """Import fast, without keeping the event loop waiting.

    What is imported is no garbage: to look through it again and again is a tenth of the time. Two
    servers of one process may do this at once; the collector is on when both have done.
    """
    collecting = gc.isenabled()
    gc.disable()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(_USUAL_SWITCH)
        if collecting:
            gc.enable()
