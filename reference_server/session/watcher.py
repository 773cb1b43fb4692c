"""Watchers of stored threads, such as an index of the home's threads.

A watcher only learns that a thread's entry in a list may have changed; the rollout has the content.
"""

from pathlib import Path
from typing import Protocol


class ThreadWatcher(Protocol):
    """A watcher, called on the event loop after the record is written; must not block or raise."""

    def on_change(self, thread_id: str, path: Path) -> None:
        """React to a new, loaded, named or rolled back thread, or to a turn's start or end."""
        ...

    def on_move(self, thread_id: str, old: Path, new: Path) -> None:
        """React to a rollout that was archived or unarchived."""
        ...


class NoWatcher:
    """A watcher that does nothing."""

    def on_change(self, thread_id: str, path: Path) -> None:
        """Do nothing."""

    def on_move(self, thread_id: str, old: Path, new: Path) -> None:
        """Do nothing."""
