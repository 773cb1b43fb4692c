"""Lost workers: one costs its job; if all are lost, the run ends."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness.faults.base import all_faults
from harness.search.mutation import campaign as campaigns
from harness.search.mutation.campaign import Campaign
from harness.search.mutation.result import Score
from harness.search.worker_processes import WorkerLost

CLEAN: dict[str, Any] = {"places": [], "known": [], "before": {}}


class FakeWorker:
    """Worker that does a number of jobs, and is lost at the next."""

    def __init__(self, does: int) -> None:
        self.left = does

    async def ask(self, _: Any) -> dict[str, Any]:
        if not self.left:
            raise WorkerLost("the worker ended")
        self.left -= 1
        return CLEAN


def campaign(monkeypatch: pytest.MonkeyPatch, *workers: int) -> Campaign:
    """Three scenarios, with workers that do so many jobs each."""
    coming = iter(workers)

    @asynccontextmanager
    async def started(_: Any) -> AsyncGenerator[FakeWorker]:
        yield FakeWorker(next(coming))

    monkeypatch.setattr(campaigns, "worker_process", started)
    faults = {"turn-ends-twice": all_faults()["turn-ends-twice"]}
    made = Campaign(faults, ["a", "b", "c", "d"], {}, Score("mine", 1), lambda _: None, workers=1)
    return made


async def test_a_worker_that_is_lost_costs_one_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    made = campaign(monkeypatch, 1, 9)
    await made.run()
    assert made.score.scenarios == 3


async def test_workers_that_do_nothing_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    made = campaign(monkeypatch, 0, 0, 0, 0)
    with pytest.raises(ExceptionGroup) as raised:
        await made.run()
    assert raised.group_contains(WorkerLost, match="3 workers")


async def test_a_fault_without_a_place_is_told_when_all_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = campaign(monkeypatch, 9)
    await made.run()
    (found,) = made.score.results
    assert (str(found.outcome), found.why) == (
        "NOT_APPLIED",
        "no scenario gives it a place on this target",
    )
