"""`harness mutate`: inject faults into a server's messages and check that the rules find them."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from harness.cli.commands.output_files import check_targets, write_json
from harness.errors import UsageError
from harness.faults.base import Fault, all_faults
from harness.faults.mutation import Outcome
from harness.judge.rules.discovery import all_rules
from harness.play.config import Config, configure
from harness.play.interruption import Interrupted, Interruption
from harness.search.cluster.connection import ClusterLost, open_cluster
from harness.search.mutation.campaign import Campaign, known_occasions
from harness.search.mutation.result import FORMAT, FaultResult, Score
from harness.search.mutation.result_text import lines
from harness.search.mutation.suite import Suite, base_of
from harness.search.worker_processes import WorkerLost, encode_config
from harness.trace.nearest import unknown_name
from harness.trace.surfaces import scenario_of

Say = Callable[[str], None]
# The reference server's profile: it offers everything, so every fault must find a place.
_OWN_PROFILE = "reference"
_RESULTS = "results.json"


def mutate_target(
    target_options: Mapping[str, Any],
    *,
    fault: str = "",
    rule: str = "",
    sample: int = 0,
    workers: int = 2,
    on: str = "",
    resume: bool = False,
    json_target: str = "",
    say: Say = print,
) -> int:
    """Try faults on a target, print and write the results, and return the exit status.

    `target_options` are the arguments of `configure`; `fault` and `rule` are comma-separated ids;
    `sample` keeps that many faults; `on` names a cluster; `resume` keeps what the run before
    killed or found masked. Raises `UsageError` for an unknown id or unusable option.
    """
    check_targets(json_target)
    config = configure(**target_options)
    faults = sample_faults(choose_faults(config, fault, rule), sample)
    base = base_of(config)
    score = Score(config.profile.name, len(faults))
    if resume:
        score.results = read_results(base / _RESULTS, score.target, faults)
        say(f"--resume: {len(score.results)} of {len(faults)} faults were killed or masked before")
    tried = {result.fault for result in score.results}
    interruption = Interruption(base)
    interruption.install()
    campaign = Campaign(
        {name: candidate for name, candidate in faults.items() if name not in tried},
        Suite(config).ids(_known_scenarios(faults) if sample else None),
        {"config": encode_config(config)},
        score,
        lambda result: _progress(result, say),
        workers=max(1, workers),
        everywhere=sample == 0,
    )
    try:
        with (
            interruption.defer_signals(),
            open_cluster(on, config) if on else nullcontext() as campaign.cluster,
            start_blocking_portal() as portal,
        ):
            interruption.wait(portal.start_task_soon(campaign.run))
    except Interrupted:
        score.interrupted_by = interruption.name
    except ExceptionGroup as failed:
        if (cluster_lost := failed.split(ClusterLost)[0]) is not None:
            score.interrupted_by = str(cluster_lost.exceptions[0])
        elif (lost := failed.split(WorkerLost)[0]) is None:
            raise
        else:
            raise UsageError(f"the workers cannot do their work: {lost.exceptions[0]}") from failed
    finally:
        interruption.remove()
    for line in lines(score):
        say(line)
    write_json(score.as_json(), str(base / _RESULTS))
    if json_target:
        write_json(score.as_json(), json_target)
    if interruption.signal:
        return interruption.status
    return 1 if score.interrupted_by else exit_status(score)


def exit_status(score: Score) -> int:
    """Return 1 if a fault survived or, on the reference server, found no place; else 0."""
    failed = score.count(Outcome.SURVIVED)
    if score.target == _OWN_PROFILE:
        failed += score.count(Outcome.NOT_APPLIED)
    return 1 if failed else 0


def choose_faults(config: Config, fault: str, rule: str) -> dict[str, Fault]:
    """Return the faults with the ids `fault` and `rule` whose rule is judged on this target.

    Raises `UsageError` if an id is unknown, or if no fault is left.
    """
    every, rules = all_faults(), all_rules()
    for name in _names(fault):
        if name not in every:
            raise UsageError(
                f"--fault: {unknown_name('fault', name, every, listed='harness faulty --list')}"
            )
    for name in _names(rule):
        if name not in rules:
            raise UsageError(
                f"--rule: {unknown_name('rule id', name, rules, listed='harness list')}"
            )
    chosen_faults = {
        name: candidate
        for name, candidate in every.items()
        if candidate.rule in config.rules
        and (not fault or name in _names(fault))
        and (not rule or candidate.rule in _names(rule))
    }
    if not chosen_faults:
        raise UsageError(
            "no fault is left to be tried: their rules judge no surface of this target"
        )
    return chosen_faults


def sample_faults(faults: dict[str, Fault], count: int) -> dict[str, Fault]:
    """Return `count` faults spread evenly over all; all if `count` is 0 or exceeds them."""
    if not 0 < count < len(faults):
        return faults
    names = list(faults)
    return {name: faults[name] for name in (names[n * len(names) // count] for n in range(count))}


def read_results(path: Path, target: str, faults: Collection[str]) -> list[FaultResult]:
    """Return which of these faults the stored run on `target` killed or found masked.

    The others are tried again: a survivor may be killed by now. Raises `UsageError` if no run of
    this target is stored, or it cannot be read.
    """
    try:
        stored = json.loads(path.read_bytes())
        is_same = (stored["format"], stored["target"]) == (FORMAT, target)
        results = [FaultResult.read(result) for result in stored["faults"] if is_same]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        is_same, results = False, []
    if not is_same:
        raise UsageError(f"--resume: {path} has no run of target {target!r}; leave out --resume")
    kept = (Outcome.KILLED, Outcome.MASKED)
    return [result for result in results if result.fault in faults and result.outcome in kept]


def _known_scenarios(faults: Iterable[str]) -> set[str]:
    """Return the names of the scenarios in which the faults are known to have a place."""
    occasions = known_occasions()
    return {scenario_of(scenario) for fault in faults for scenario in occasions.get(fault, ())}


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _progress(result: FaultResult, say: Say) -> None:
    if result.outcome is Outcome.SURVIVED:
        say(f"SURVIVED {result.fault} ({result.rule})")
