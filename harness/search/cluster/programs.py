"""Programs on a worker of a cluster, each of which plays the units of one run.

A unit is a line of JSON for the program, and its result the line that comes back. A program keeps
its server for the next unit. It ends with its run, after `MAX_IDLE_SECONDS` without a unit, or with
its worker, since its input ends then. All of this runs on the worker's event loop.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from harness.search.worker_processes import WorkerProcess, worker_process

# A run whose controller was killed leaves its programs.
MAX_IDLE_SECONDS = 120.0
# Bound of the answer to a last message, before which a program may confirm what it found.
MAX_LAST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A program for the run called `run`: its module, and its first and last message as JSON.

    The last one is answered at the end of the program; "" for none.
    """

    run: str
    module: str
    first: str
    last: str = ""


class _Program:
    def __init__(self, spec: ProgramSpec) -> None:
        self.spec = spec
        self.is_busy = True
        self._stack = AsyncExitStack()
        self._worker: WorkerProcess | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._ending: asyncio.Future[None] | None = None

    async def ask(self, job: Mapping[str, Any], bound: float | None) -> dict[str, Any]:
        if self._worker is None:
            opened = worker_process(json.loads(self.spec.first), self.spec.module)
            self._worker = await self._stack.enter_async_context(opened)
        return await self._worker.ask(job, bound)

    def take(self) -> None:
        self.is_busy = True
        if self._expiry is not None:
            self._expiry.cancel()

    def rest(self) -> None:
        self.is_busy = False
        self._expiry = asyncio.get_running_loop().call_later(MAX_IDLE_SECONDS, self._expire)

    def _expire(self) -> None:
        # At once, so that nobody takes it while it ends.
        _programs.remove(self)
        self._ending = asyncio.ensure_future(self.end())

    async def end(self, *, is_lost: bool = False) -> None:
        """End the program with all that it started, after its last message unless it `is_lost`."""
        self.take()
        if self in _programs:
            _programs.remove(self)
        try:
            if self.spec.last and self._worker is not None and not is_lost:
                answer = await self._worker.ask(json.loads(self.spec.last), MAX_LAST_SECONDS)
                _last_answers[self.spec.run].append(answer)
        finally:
            await self._stack.aclose()


_programs: list[_Program] = []
# By the run, until they are fetched.
_last_answers: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)


async def play_unit(
    spec: ProgramSpec, job: Mapping[str, Any], bound: float | None
) -> dict[str, Any]:
    """Play a unit on this worker and return its result.

    Raises `WorkerLost` if its program ends, or gives no result within `bound` seconds.
    """
    program = await _take(spec)
    try:
        result = await program.ask(job, bound)
    except BaseException:
        await program.end(is_lost=True)
        raise
    if program in _programs:  # It was not ended meanwhile.
        program.rest()
    return result


async def _take(spec: ProgramSpec) -> _Program:
    idle = [one for one in _programs if one.spec.run == spec.run and not one.is_busy]
    for program in idle:
        if program.spec == spec:
            program.take()
            return program
    program = _Program(spec)
    _programs.append(program)
    # Those of an earlier round of the run are not needed any more. Other units look for a program
    # while they end.
    for old in idle:
        old.take()
        _programs.remove(old)
    await asyncio.gather(*(old.end() for old in idle))
    return program


async def end_programs(run: str) -> list[dict[str, Any]]:
    """End the programs of a run on this worker; return the answers to their last messages."""
    ended = (one.end() for one in tuple(_programs) if one.spec.run == run)
    await asyncio.gather(*ended, return_exceptions=True)
    return _last_answers.pop(run, [])
