"""A mutation run: scenarios without faults, which show where faults can act, then each fault.

The first of two rounds plays scenarios in which the faults are known to have a place (occasions).
The second tries the faults that were not killed in all other scenarios.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import yaml

from harness.faults.base import Fault, StoredOnly
from harness.faults.mutation import Outcome
from harness.search.cluster.connection import Cluster, ClusterWorker
from harness.search.mutation.plan import Place, Plan, put_into_traces
from harness.search.mutation.result import Attempt, FaultResult, Score, decide_outcome
from harness.search.worker_processes import (
    MAX_JOB_SECONDS,
    ReplacedWorker,
    WorkerLost,
    WorkerProcess,
    worker_process,
)

# Fault id -> ids of scenarios in which it can act, the best one first.
Occasions = Mapping[str, Sequence[str]]


@cache
def known_occasions() -> Occasions:
    """Return the shipped table of occasions."""
    text = Path(__file__).with_name("occasions.yaml").read_text("utf-8")
    table: dict[str, list[str]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return table


def choose_first_scenarios(
    faults: Iterable[str], scenarios: Sequence[str], occasions: Occasions
) -> list[str]:
    """Return a few of the scenarios, in order, that give each fault of the table a place."""
    available = set(scenarios)
    places = {
        fault: [scenario for scenario in occasions.get(fault, ()) if scenario in available]
        for fault in faults
    }
    chosen = covering_scenarios(places)
    return [scenario for scenario in scenarios if scenario in chosen]


def covering_scenarios(
    places: Mapping[str, Collection[str]], seconds: Mapping[str, float] | None = None
) -> set[str]:
    """Return scenarios that cover each fault, preferring those that cover most per second.

    `seconds` is the duration of each scenario; without it all take the same.
    """
    costs = seconds or {}
    uncovered = {fault: set(ids) for fault, ids in places.items() if ids}
    chosen: set[str] = set()
    while uncovered:
        served: dict[str, int] = {}
        for ids in uncovered.values():
            for scenario in ids:
                served[scenario] = served.get(scenario, 0) + 1
        best = min(
            served,
            key=lambda scenario: (-served[scenario] / (0.1 + costs.get(scenario, 0.1)), scenario),
        )
        chosen.add(best)
        uncovered = {fault: ids for fault, ids in uncovered.items() if best not in ids}
    return chosen


Job = dict[str, Any]
WORKER = "harness.search.mutation.worker"
# Called with the result of each fault.
Say = Callable[[FaultResult], None]


@dataclass(slots=True)
class Campaign:
    """State of a mutation run. `first_message` is sent to each worker at its start.

    `everywhere`: faults that the known scenarios do not kill are tried in all others too. The
    `cluster` plays in place of `workers` processes.
    """

    faults: Mapping[str, Fault]
    scenarios: Sequence[str]
    first_message: Mapping[str, Any]
    score: Score
    say: Say
    workers: int = 2
    everywhere: bool = True
    occasions: Occasions = field(default_factory=known_occasions)
    cluster: Cluster | None = None
    plan: Plan = field(init=False)
    _is_last_round: bool = False
    _open_faults: dict[str, Fault] = field(default_factory=dict[str, Fault])
    _attempts: dict[str, list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    _known_rules: set[str] = field(default_factory=set[str])
    _before: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))

    def __post_init__(self) -> None:
        self.plan = Plan(self.faults)

    async def run(self) -> None:
        """Play all rounds. Results are in `score`, also if this is cancelled."""
        began = time.monotonic()
        first_scenarios = choose_first_scenarios(self.faults, self.scenarios, self.occasions)
        try:
            self._open_faults, self._is_last_round = dict(self.faults), not self.everywhere
            if first_scenarios or self._is_last_round:
                await self._round(first_scenarios)
            if self._open_faults and self.everywhere:
                self._is_last_round = True
                await self._round(
                    [
                        scenario
                        for scenario in self.scenarios
                        if scenario not in set(first_scenarios)
                    ]
                )
        finally:
            self.score.seconds = time.monotonic() - began

    async def _round(self, scenarios: Sequence[str]) -> None:
        """Play these scenarios without faults, then the open faults where they can act."""
        clean = deque[Job]({"clean": scenario} for scenario in scenarios)
        async with anyio.create_task_group() as tasks:
            faults = deque[Job]()
            planned = anyio.Event()
            workers = self.workers if self.cluster is None else len(self.cluster.slots)
            workers_left = [workers]

            def all_clean() -> None:
                workers_left[0] -= 1
                if workers_left[0] == 0:
                    faults.extend(self._live_jobs())
                    planned.set()

            for number in range(workers):
                tasks.start_soon(self._work, number, clean, all_clean, planned, faults)

    async def _work(
        self,
        number: int,
        clean: deque[Job],
        all_clean: Callable[[], None],
        planned: anyio.Event,
        faults: deque[Job],
    ) -> None:
        """Run one worker: its share of the clean plays, and when all are done, of the faults."""
        first = {**self.first_message, "faults": list(self._open_faults), "name": f"m{number}"}
        async with AsyncExitStack() as stack:
            worker = ReplacedWorker(lambda: self._open_worker(first, number), stack)
            await self._do_jobs(worker, clean, self._note_clean, _lost_clean)
            all_clean()
            await planned.wait()
            await self._do_jobs(worker, faults, self._note_live, self._lost_live)

    def _open_worker(
        self, first: Mapping[str, Any], number: int
    ) -> AbstractAsyncContextManager[WorkerProcess | ClusterWorker]:
        if self.cluster is None:
            return worker_process(first)
        # One name for all slots: a program plays for the next one, too.
        program = self.cluster.program(WORKER, {**first, "name": "m"})
        return nullcontext(ClusterWorker(self.cluster, number, program, MAX_JOB_SECONDS))

    async def _do_jobs(
        self,
        worker: ReplacedWorker,
        jobs: deque[Job],
        note: Callable[[Job, dict[str, Any]], None],
        lost: Callable[[Job, str], None],
    ) -> None:
        """Do jobs until none is left; a job at which a worker is lost is not repeated."""
        while jobs:
            await worker.start()
            if not jobs:
                return
            job = jobs.popleft()
            try:
                answer = await worker.ask(job)
            except WorkerLost as reason:
                lost(job, str(reason))
                await worker.end(reason, is_needed=bool(jobs))
            else:
                note(job, answer)

    def _note_clean(self, job: Job, answer: dict[str, Any]) -> None:
        self.score.scenarios += 1
        self.plan.add((fault, Place.read(place)) for fault, place in answer["places"])
        self._known_rules |= set(answer["known"])
        for rule, count in answer["before"].items():
            self._before[rule][job["clean"]] = count

    def _note_live(self, job: Job, answer: dict[str, Any]) -> None:
        fault = self.faults[job["fault"]]
        attempts = [Attempt.read(attempt) for attempt in answer["attempts"]]
        if decide_outcome(attempts) is Outcome.NOT_APPLIED:
            # The fault waits for a later action of the client, so it blocks a live play.
            attempts.append(_stored_attempt(fault, self._untried_places(fault)[0]))
        self._finish_fault(fault, attempts)

    def _lost_live(self, job: Job, reason: str) -> None:
        scenario = job["places"][0]["scenario"] if job["places"] else ""
        attempt = Attempt(
            scenario, Outcome.SURVIVED, live=True, why=f"the play broke off: {reason}"
        )
        self._finish_fault(self.faults[job["fault"]], [attempt])

    def _finish_fault(self, fault: Fault, attempts: Sequence[Attempt]) -> None:
        """Record attempts at a fault; it stays open if it is not killed and a round follows."""
        tried = [*self._attempts[fault.id], *attempts]
        outcome = decide_outcome(tried)
        self._attempts[fault.id] = tried
        if outcome is not Outcome.KILLED and not self._is_last_round:
            return
        del self._open_faults[fault.id]
        result = FaultResult(
            fault.id,
            fault.rule,
            fault.reason,
            outcome,
            tuple(tried),
            why="" if tried else self._no_place_reason(fault),
            places=tuple(self.plan.killed_in(fault)),
        )
        self.score.results.append(result)
        self.say(result)

    def _no_place_reason(self, fault: Fault) -> str:
        if self.everywhere:
            return "no scenario gives it a place on this target"
        occasions = self.occasions.get(fault.id)
        looked_in = f"not in {', '.join(occasions)}" if occasions else "no scenario is known for it"
        return f"it found no place ({looked_in}); without --sample all scenarios are looked at"

    def _untried_places(self, fault: Fault) -> list[Place]:
        tried = {attempt.scenario for attempt in self._attempts[fault.id]}
        return [place for place in self.plan.best(fault) if place.scenario not in tried]

    def _live_jobs(self) -> list[Job]:
        """Return jobs for the faults to be played live, and finish the others.

        Faults for stored traces were already tried on those of the clean plays.
        """
        jobs: list[Job] = []
        for fault in list(self._open_faults.values()):
            places = self._untried_places(fault)
            if not places:
                self._finish_fault(fault, ())
            elif put_into_traces(fault) or all(place.by_client for place in places):
                self._finish_fault(fault, [_stored_attempt(fault, place) for place in places[:1]])
            else:
                is_known = fault.rule in self._known_rules
                live = [asdict(place) for place in places if not place.by_client]
                before = dict(self._before[fault.rule])
                jobs.append(
                    {"fault": fault.id, "places": live, "known": is_known, "before": before}
                )
        return jobs


def _lost_clean(_: Job, __: str) -> None:
    """Ignore a scenario at which a worker was lost: it gives no places."""


def _stored_attempt(fault: Fault, place: Place) -> Attempt:
    reason = ""
    if place.outcome is Outcome.SURVIVED:
        reason = "the rule found nothing new in the trace with the fault in it"
    if place.outcome is Outcome.MASKED:
        reason = "the target is known to break the rule, or breaks it without the fault too"
    changed = (fault.reason,) if isinstance(fault.change, StoredOnly) else ()
    return Attempt(place.scenario, place.outcome, live=False, changed=changed, why=reason)
