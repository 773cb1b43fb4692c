"""Limiting the work for one patch, and stopping it when its caller was cancelled.

A limit for each file is not enough: a patch may have many files. The caller decides what happens
when the budget is used up.
"""

import anyio
from anyio import from_thread


class WorkBudget:
    """A number of steps that may be taken in all."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def take(self, steps: int) -> bool:
        """Take steps; False, and none taken, if fewer are left."""
        if steps > self._left:
            return False
        self._left -= steps
        return True


def stop_if_abandoned() -> None:
    """Raise the cancellation if this worker thread's caller was cancelled and waits no more.

    To be called at least about once a second. Outside a worker thread of anyio it does nothing.
    """
    try:
        from_thread.check_cancelled()
    except (anyio.NoEventLoopError, RuntimeError):
        return
