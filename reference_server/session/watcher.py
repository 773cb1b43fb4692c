"""Watchers of stored threads, such as an index of the home's threads.

What is told is only that what a list shows of the thread may be different now; the rollout says
what it is.
"""

from pathlib import Path
from typing import Protocol


class ThreadWatcher(Protocol):
    """Told on the event loop, right after the record is in the file: it must not block or raise."""

    def touched(self, thread_id: str, path: Path) -> None:
        """A turn began or ended, or the thread is new or was named, rolled back or loaded."""
        ...

    def moved(self, thread_id: str, old: Path, new: Path) -> None:
        """The rollout was archived, or brought back."""
        ...


class NoWatcher:
    """Nobody is told."""

    def touched(self, thread_id: str, path: Path) -> None:
        """Do nothing."""

    def moved(self, thread_id: str, old: Path, new: Path) -> None:
        """Do nothing."""
