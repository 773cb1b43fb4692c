"""How much may be spent on one patch, and whether it is still wanted.

Here lives the bound on work that grows faster than its input: a patch may name many files, each of
which is cheap enough. What is done when it is used up is the caller's.
"""

import anyio
from anyio import from_thread


class Effort:
    """A number of steps that can be spent once."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def take(self, steps: int) -> bool:
        """Spend steps; False, and nothing spent, where so many are not left."""
        if steps > self._left:
            return False
        self._left -= steps
        return True


def go_on() -> None:
    """Stop here if nobody waits for the work of this thread any more: raises the cancellation.

    Called between stretches of work of less than about a second. Elsewhere it does nothing.
    """
    try:
        from_thread.check_cancelled()
    except (anyio.NoEventLoopError, RuntimeError):
        return
