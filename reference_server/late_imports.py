"""Imports that are deferred until needed, so that a short session pays only for its own.

Each module defers its own imports: the services to the first thread, the tools to the first call.
"""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

SWITCH_SECONDS = 0.0005
"""Seconds after which an importing thread lets the event loop run, which may have requests."""
_USUAL_SWITCH_SECONDS = sys.getswitchinterval()


@contextmanager
def fast_imports() -> Generator[None]:
    """Import without garbage collection, and with frequent switches to the event loop's thread.

    A collection would take a tenth of the time and free nothing: imported modules stay, so later
    collections skip them too. Blocks may be nested or overlap; the collector is on again when all
    are done.
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
