"""Sequences in several processes: jobs of a lost one are played, and none is left behind."""

from __future__ import annotations

import asyncio
import math
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from harness.play.config import configure
from harness.search.fuzz.sessions.lanes import WaitingJobs
from harness.search.sequences import processes as process_module
from harness.search.sequences import search as searching
from harness.search.sequences.processes import PlayerProcess
from harness.search.sequences.result import ConversationResult, decode_result
from harness.search.sequences.search import SequenceCampaign, search_sequences
from harness.search.worker_processes import WorkerLost, WorkerProcess
from harness.trace.trace import Trace

pytestmark = [pytest.mark.slow, pytest.mark.socket]
ROOT = Path(__file__).parents[2]
MINIMAL = f"'{sys.executable}' '{ROOT}/fixtures/servers/minimal.py'"
WORKER = "harness.search.sequences.worker"
PAUSE = threading.Event()
RESULT = ConversationResult(Trace(), None, [], {}, set())
BOUND = 60.0


class LastWorker:
    """Stub of a worker that answers `answers` jobs, and is lost then."""

    def __init__(self, answers: int) -> None:
        self._left = answers
        self._numbers = asyncio.Queue[int]()

    async def tell(self, message: Mapping[str, Any]) -> None:
        """Take a job."""
        self._numbers.put_nowait(message["number"])

    async def receive(self) -> dict[str, Any]:
        """Return the answer to the earliest job."""
        number = await self._numbers.get()
        if not self._left:
            raise WorkerLost("the worker ended")
        self._left -= 1
        return {"number": number, "result": RESULT.encode()}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("answers", [0, 1, 4])
async def test_jobs_of_a_lost_worker_are_put_back(answers: int) -> None:
    jobs = WaitingJobs([{"title": str(number)} for number in range(9)], math.inf)
    played: list[int] = []
    player = PlayerProcess(cast("WorkerProcess", LastWorker(answers)), 2)
    await player.play_jobs(jobs, lambda number, _: played.append(number))
    assert played == list(range(answers))
    # Nothing is taken by it any more.
    await player.play_jobs(jobs, lambda number, _: played.append(number))
    left: list[int] = []
    while (job := await jobs.take()) is not None:
        left.append(job[0])
    assert sorted(played + left) == list(range(9))


def test_coverage_does_not_depend_on_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    numbers: list[int] = []

    def decode(text: str) -> ConversationResult:
        numbers[-1] += 1
        return decode_result(text)

    monkeypatch.setattr(process_module, "decode_result", decode)
    config = configure(target="spec", server_cmd=MINIMAL, scale=1.0)
    campaigns: list[SequenceCampaign] = []
    for processes in (0, 1):
        monkeypatch.setattr(searching, "MAX_FURTHER_PROCESSES", processes)
        numbers.append(0)
        campaigns.append(search_sequences(config, 2, math.inf))
    alone, shared = campaigns
    assert [failure.text for failure in alone.failures + shared.failures] == []
    assert shared.cases == alone.cases
    assert shared.coverage.goals == alone.coverage.goals
    assert shared.rules == alone.rules
    assert numbers[0] == 0 < numbers[1] < shared.cases


SEARCH = """
import math, sys
from harness.play.config import configure
from harness.search.sequences import search
search.MAX_FURTHER_PROCESSES = 1
config = configure(target="spec", server_cmd=sys.argv[1], scale=1.0)
search.search_sequences(config, 2, math.inf)
"""


def worker_and_servers(search: psutil.Process) -> list[psutil.Process]:
    """Return all processes below a search, once its worker has started a server; else none."""
    with suppress(psutil.NoSuchProcess):
        family = search.children(recursive=True)
        workers = [one for one in family if WORKER in one.cmdline()]
        if any(worker.children() for worker in workers):
            return family
    return []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_worker_ends_with_the_search(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SEARCH, MINIMAL]
    with (tmp_path / "out").open("wb") as out:
        search = psutil.Popen(command, cwd=tmp_path, stdout=out, stderr=out)
    end = time.monotonic() + BOUND
    while not (family := worker_and_servers(search)):
        assert time.monotonic() < end
        PAUSE.wait(0.01)  # Nothing tells it of another process.
    search.send_signal(number)
    search.wait(BOUND)
    _, left = psutil.wait_procs(family, BOUND)
    assert left == []
