"""Limit on the work for one patch, and its end when its caller was cancelled.

A limit for each file is not enough: a patch may have many files. The caller decides what to do when
the budget is used up.
"""

import anyio
from anyio import from_thread


class WorkBudget:
    """Maximum number of steps in total."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def take(self, steps: int) -> bool:
        """Take steps and return True; return False, taking none, if fewer are left."""
        if steps > self._left:
            return False
        self._left -= steps
        return True


def stop_if_abandoned() -> None:
    """Raise anyio's cancellation error if this worker thread's caller was cancelled.

    Long work calls it about once a second. Outside a worker thread of anyio it does nothing.
    """
    try:
        from_thread.check_cancelled()
    except (anyio.NoEventLoopError, RuntimeError):
        return
