"""Importing the bulk of the server in a worker thread, while requests may already come.

Here live the settings of the interpreter meanwhile. What is imported, and when, lives in `server`
and `services`.
"""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

SWITCH = 0.0005
"""Seconds after which the importing thread lets the event loop, which has requests, run."""
_USUAL_SWITCH = sys.getswitchinterval()


@contextmanager
def importing() -> Generator[None]:
    """Import fast, without keeping the event loop waiting.

    The garbage collector is off meanwhile: it would take a tenth of the time and find nothing. Two
    servers of one process may do this at once; the collector is on again when both are done.
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
