"""Good conversations about where threads are kept: the archive, names, leaving.

A part of `good_traces`, which stores them.
"""

from collections.abc import Callable

from harness.trace.trace import Trace
from tests.rules.cases_archiving import archives, unarchives
from tests.rules.traces import Talk


def archived() -> Trace:
    """A thread with a turn is archived, and taken out of the archive again."""
    talk = archives(Talk("archived").start_thread().plain_turn())
    return unarchives(talk).trace()


STORAGE: dict[str, Callable[[], Trace]] = {"archived": archived}
