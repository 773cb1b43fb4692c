"""Lanes: queues that keep the requests of one thread in order.

Jobs of one lane run one after the other, in the order in which they came; jobs of different lanes
run side by side.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from anyio.abc import TaskGroup

Job = Callable[[], Coroutine[Any, Any, None]]


class Lanes:
    """The lanes of a server, shared by its connections. Jobs must not raise."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._waiting: dict[str, deque[Job]] = {}

    def submit(self, lane: str, job: Job) -> None:
        """Start a job once those before it in its lane are done; do not wait for it."""
        waiting = self._waiting.get(lane)
        if waiting is not None:
            waiting.append(job)
            return
        self._waiting[lane] = deque([job])
        self._tasks.start_soon(self._run, lane)

    def run_at_once(self, job: Job) -> None:
        """Start a job now, outside any lane; do not wait for it."""
        self._tasks.start_soon(job)

    async def _run(self, lane: str) -> None:
        waiting = self._waiting[lane]
        try:
            while waiting:
                await waiting.popleft()()
        finally:
            del self._waiting[lane]
