"""Worker process of a mutation run: jobs come in as lines of JSON, results go out.

The first line has the options of the run, the faults to try and the worker's name. Then each
line is a job: `{"clean": ID}` plays a scenario without faults and returns where faults can act;
`{"fault": ID, "places": [...], ...}` plays a fault. The end of the input ends the worker.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from harness.faults.base import Fault, all_faults
from harness.faults.mutation import Outcome
from harness.judge.verdict import Verdict
from harness.play.bench import open_bench
from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.play.worker_session import WorkerSession
from harness.search.mutation.bench import FaultyBench, violation_count
from harness.search.mutation.plan import Place, Plan, places_on
from harness.search.mutation.play import Job, attempt_fault
from harness.search.mutation.result import Attempt
from harness.search.mutation.suite import Suite, base_of
from harness.search.worker_processes import decode_config
from harness.trace.names import Renamer
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Trace

Answer = dict[str, Any]


class Worker:
    """Worker that does one job after the other on its own bench."""

    def __init__(
        self, config: Config, faults: Mapping[str, Fault], name: str, interruption: Interruption
    ) -> None:
        self._config = config
        self._plan = Plan(faults)
        self._faults = faults
        self._name = name
        self._interruption = interruption
        self._suite = Suite(config)
        self._session: WorkerSession | None = None
        self._live: tuple[BlockingPortal, FaultyBench] | None = None
        self._stack = ExitStack()

    def do(self, job: Mapping[str, Any]) -> Answer:
        """Do one job and return its answer. Raises `Interrupted` at a signal."""
        if "clean" in job:
            return self.play_clean(str(job["clean"]))
        places = [Place.read(place) for place in job["places"]]
        fault = self._faults[str(job["fault"])]
        attempts = self.play_live(Job(fault, places, bool(job["known"]), dict(job["before"])))
        return {"attempts": [asdict(attempt) for attempt in attempts]}

    def play_clean(self, scenario: str) -> Answer:
        """Play a scenario without faults; return where faults can act, and its violations."""
        if self._session is None:
            self._session = WorkerSession(
                self._config, f"{self._name}c", interruption=self._interruption
            )
        outcome = self._session.play(self._suite.scenario(scenario))
        answer: Answer = {"verdict": str(outcome.verdict), "places": [], "known": [], "before": {}}
        judged = (Verdict.PASS, Verdict.KNOWN, Verdict.FAIL)
        if not outcome.trace or outcome.verdict not in judged:
            return answer
        known_rules = {row.rule for row in outcome.rows if row.verdict is Verdict.KNOWN}
        for rule in {row.rule for row in outcome.rows if row.verdict is Verdict.FAIL}:
            answer["before"][rule] = violation_count(
                [row for row in outcome.rows if row.rule == rule]
            )
        trace = self._read(Path(outcome.trace))
        faults = self._plan.open_on(trace.header.surface)
        found_places = places_on(self._config.book, trace, faults, known_rules, outcome.seconds)
        self._plan.add(found_places)
        answer["places"] = [(fault, asdict(place)) for fault, place in found_places]
        answer["known"] = sorted(known_rules)
        return answer

    def _read(self, path: Path) -> Trace:
        names = load(path, classify_of=classify_of).header.names
        renamer = Renamer(names, self._config.book.paths_of)
        return load(path, renamer=renamer, classify_of=classify_of)

    def play_live(self, job: Job) -> list[Attempt]:
        """Play a fault where it can act, until one play kills it; return all attempts."""
        return list(self._attempts(job))

    def _attempts(self, job: Job) -> Iterator[Attempt]:
        for place in job.places:
            result = self._attempt(job, place)
            if result is None:
                # A fault, possibly the previous one, may have broken the bench: try again.
                result = self._attempt(job, place)
            if result is None:
                reason = "the play broke off twice, on a new server too"
                result = Attempt(place.scenario, Outcome.SURVIVED, live=True, why=reason)
            yield result
            if result.outcome is Outcome.KILLED:
                return

    def _attempt(self, job: Job, place: Place) -> Attempt | None:
        """Play a fault in one place; None if the bench broke, which is then discarded."""
        loaded = self._suite.scenario(place.scenario)
        try:
            portal, bench = self._open_live()
            return self._interruption.wait(
                portal.start_task_soon(attempt_fault, bench, job, place, loaded, self._traces)
            )
        except Exception:
            self._end_live()
            return None

    @property
    def _traces(self) -> Path:
        return self._config.base / "faults" / self._config.profile.name

    def _open_live(self) -> tuple[BlockingPortal, FaultyBench]:
        if self._live is None:
            self._end_clean()
            portal = self._stack.enter_context(start_blocking_portal())
            opening = open_bench(
                self._config.profile,
                self._config.book,
                base=self._config.base,
                worker=f"{self._name}f",
                scale=self._config.scale,
                kind=FaultyBench,
            )
            bench = self._stack.enter_context(portal.wrap_async_context_manager(opening))
            self._live = portal, bench
        return self._live

    def _end_clean(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def close(self) -> None:
        """End all servers and models."""
        self._end_clean()
        self._end_live()

    def _end_live(self) -> None:
        self._live = None
        with suppress(Exception):
            self._stack.close()


def main() -> None:
    """Do the jobs of standard input until its end; answer each with one line."""
    settings = json.loads(sys.stdin.readline())
    config = decode_config(settings["config"])
    config = replace(config, base=base_of(config))
    every = all_faults()
    interruption = Interruption(config.base)
    interruption.role = "worker"
    interruption.install()
    worker = Worker(
        config,
        {fault: every[fault] for fault in settings["faults"]},
        settings["name"],
        interruption,
    )
    try:
        with interruption.defer_signals():
            for line in sys.stdin:
                began = time.monotonic()
                answer = worker.do(json.loads(line))
                answer["seconds"] = time.monotonic() - began
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()
    except (Interrupted, BrokenPipeError):
        pass
    finally:
        worker.close()


if __name__ == "__main__":
    main()
