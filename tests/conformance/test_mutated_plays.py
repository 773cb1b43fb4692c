"""Faults at work between the reference server and the judge, while a scenario is played."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.faults.base import Fault, all_faults
from harness.faults.mutation import Outcome
from harness.faults.queue import FrameQueue, Steps
from harness.play.config import configure
from harness.play.interruption import Interruption
from harness.search.mutation.plan import Place
from harness.search.mutation.play import Job
from harness.search.mutation.result import Attempt
from harness.search.mutation.worker import Worker
from harness.search.worker_processes import encode_config, worker_process

pytestmark = [pytest.mark.slow, pytest.mark.socket]

TWICE = all_faults()["turn-ends-twice"]
PLAIN = Place("turns/plain-turn", Outcome.KILLED, 0.2)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker with the reference server, shared by the plays of this file."""
    base = tmp_path_factory.mktemp("mutated")
    config = replace(configure(target="reference"), base=base)
    found = Worker(config, all_faults(), "test", Interruption(base))
    yield found
    found.close()


def played(worker: Worker, fault: Fault, *, known: bool = False, before: int = 0) -> Attempt:
    """The fault in the plain turn."""
    (made,) = worker.play_live(Job(fault, [PLAIN], known, {PLAIN.scenario: before}))
    return made


def test_a_fault_is_killed_by_its_rule_while_it_is_at_work(worker: Worker) -> None:
    made = played(worker, TWICE)
    assert made.outcome is Outcome.KILLED
    assert any("turn/completed" in one for one in made.changed)


def test_a_fault_whose_rule_looks_elsewhere_survives_with_its_trace_and_why(worker: Worker) -> None:
    made = played(worker, replace(TWICE, rule="thread.started-announced"))
    assert made.outcome is Outcome.SURVIVED
    assert made.why == "the rule judged once and found nothing wrong"
    assert b"turn/completed" in Path(made.trace).read_bytes()


def test_where_the_target_is_known_to_break_the_rule_the_fault_is_masked(worker: Worker) -> None:
    assert played(worker, TWICE, known=True).outcome is Outcome.MASKED


def test_a_rule_that_is_broken_as_often_without_the_fault_masks_it(worker: Worker) -> None:
    assert played(worker, TWICE, before=20).outcome is Outcome.MASKED


def test_a_fault_without_a_place_is_not_applied_and_says_what_it_waited_for(worker: Worker) -> None:
    made = played(worker, all_faults()["fork-under-the-old-id"])
    assert made.outcome is Outcome.NOT_APPLIED
    assert "nothing was changed" in made.why


def test_a_message_that_never_comes_ends_the_play_and_not_the_run(worker: Worker) -> None:
    silent = all_faults()["turn-never-ends"]
    assert played(worker, silent).outcome is Outcome.KILLED
    assert played(worker, TWICE).outcome is Outcome.KILLED


def broken(_: FrameQueue) -> Steps:
    """A fault that is itself wrong, at the first message."""
    yield
    raise RuntimeError("a fault that breaks")


def test_a_fault_that_breaks_the_play_costs_this_one_play(worker: Worker) -> None:
    made = played(worker, replace(TWICE, change=broken))
    assert made.outcome is not Outcome.KILLED
    assert played(worker, TWICE).outcome is Outcome.KILLED


def test_a_clean_play_says_where_faults_can_act(worker: Worker) -> None:
    answer = worker.play_clean("turns/plain-turn")
    found = {fault: Place.read(place) for fault, place in answer["places"]}
    assert answer["verdict"] == "PASS"
    assert found["turn-ends-twice"].outcome is Outcome.KILLED


async def test_a_worker_that_waits_for_a_job_ends_by_itself_and_at_once() -> None:
    config = encode_config(configure(target="reference"))
    first = {"config": config, "faults": [TWICE.id], "name": "m9"}
    async with worker_process(first) as waiting:
        answer = await waiting.ask({"clean": "turns/plain-turn"})
    assert answer["verdict"] == "PASS"
    # One that had to be killed would have left what it started, and the run waiting.
    assert waiting.process.returncode == 0
