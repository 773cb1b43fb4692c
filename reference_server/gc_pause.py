"""Work during which the garbage collector is off.

While hundreds of thousands of objects are made that all stay, the collector goes through them again
and again and finds nothing: a third of the time of answering with a long rollout. The block reaches
to the end of the answer, after which most of the objects are gone.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def garbage_collection_paused() -> Generator[None]:
    """Turn the collector off for the block, in all threads.

    If blocks overlap, the end of the first one turns it on again, also for the others.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
