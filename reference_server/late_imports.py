"""Imports that are deferred until needed, so that a short session pays only for its own.

What is imported late, and when, lives where it is needed: the services with the first thread, the
tools with the first call, and so on.
"""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

SWITCH_SECONDS = 0.0005
"""Seconds after which a thread that imports lets the event loop run, which has requests."""
_USUAL_SWITCH_SECONDS = sys.getswitchinterval()


@contextmanager
def fast_imports() -> Generator[None]:
    """Import fast, and without keeping the event loop waiting where a worker thread imports.

    The garbage collector is off meanwhile: it would take a tenth of the time and find nothing. What
    is imported stays, so later collections need not visit it. Blocks may be nested or overlap; the
    collector is on again when all are done.
    """
    collecting = gc.isenabled()
    gc.disable()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(_USUAL_SWITCH_SECONDS)
        if collecting:
            gc.freeze()
            gc.enable()
