"""Where rollouts lie in a home.

Here lives naming and finding: `sessions/YYYY/MM/DD/rollout-<timestamp>-<thread id>.jsonl`. What is
in the files is `records`' and `reader`'s matter.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from reference_server.config.home import Home
from reference_server.ids import Counters

_THREAD_ID = re.compile(r"thr_\d+")
_FILE = re.compile(r"rollout-.*-thr_(\d+)\.jsonl")
_TURN = re.compile(rb'"turnId":"turn_(\d+)"')


class RolloutStore:
    """The rollouts of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def new_path(self, thread_id: str, at: float) -> Path:
        """Name the file of a thread that starts now (seconds since 1970; UTC in the name)."""
        when = datetime.fromtimestamp(at, UTC)
        name = f"rollout-{when:%Y-%m-%dT%H-%M-%S}-{thread_id}.jsonl"
        return self._home.sessions / f"{when:%Y/%m/%d}" / name

    def find(self, thread_id: str) -> Path | None:
        """Find a thread's file."""
        # Anything else could be a pattern, or lead out of the home.
        if not _THREAD_ID.fullmatch(thread_id):
            return None
        found = self._home.sessions.glob(f"*/*/*/rollout-*-{thread_id}.jsonl")
        return next(iter(sorted(found)), None)

    def highest_ids(self) -> Counters:
        """Search all rollouts, archived ones too, for the highest numbers in use. Slow."""
        threads = turns = 0
        for path in self._all():
            if named := _FILE.fullmatch(path.name):
                threads = max(threads, int(named[1]))
            with path.open("rb") as lines:
                for line in lines:
                    turns = max(turns, *map(int, _TURN.findall(line)), 0)
        return Counters(threads, turns)

    def _all(self) -> Iterator[Path]:
        for root in (self._home.sessions, self._home.archived_sessions):
            yield from root.rglob("rollout-*.jsonl")
