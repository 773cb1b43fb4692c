"""One fault, played live in a scenario until the rule notices it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.client.target.profile import Bounds
from harness.faults.base import Fault
from harness.faults.mutation import Outcome
from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Row, Verdict
from harness.play.run import Run
from harness.scenario.loader import Loaded
from harness.search.mutation.bench import FaultAtWork, FaultyBench, violation_count
from harness.search.mutation.plan import Place
from harness.search.mutation.result import Attempt
from harness.trace.store import save

# Bound of a step: a multiple of the clean scenario's duration plus a margin, since a message that a
# fault removed never comes.
STEP_FACTOR, STEP_MARGIN_SECONDS = 2.0, 1.0


@dataclass(frozen=True, slots=True)
class Job:
    """A fault and the places to play it.

    `is_known`: the target is known to break the rule. `before` is how often each scenario breaks it
    without the fault.
    """

    fault: Fault
    places: Sequence[Place]
    is_known: bool
    before: Mapping[str, int]


def bounds_for(bounds: Bounds, seconds: float) -> Bounds:
    """Return the bounds of a play with a fault; `seconds` is its duration without the fault."""
    step = min(bounds.step, STEP_FACTOR * seconds + STEP_MARGIN_SECONDS)
    scenario = min(bounds.scenario, 2 * step + STEP_FACTOR * seconds)
    return bounds.model_copy(update={"step": step, "scenario": scenario})


async def attempt_fault(
    bench: FaultyBench, job: Job, place: Place, loaded: Loaded, traces: Path
) -> Attempt:
    """Play one scenario with the fault, and store the trace in `traces` unless it is killed.

    Raises `SetupFailed` if the server cannot be used at all.
    """
    rule = all_rules()[job.fault.rule]
    bounds = bounds_for(bench.bounds, place.seconds)
    work = FaultAtWork(job.fault, rule, loaded.id, bounds, job.before.get(loaded.id, 0))
    bench.at_work = work
    try:
        run = await bench.run(loaded)
    finally:
        bench.at_work = None
    rows = judge(bench.book, run.trace, [rule])
    outcome = _outcome(work, rows, is_known=job.is_known)
    reason = trace = ""
    if outcome is not Outcome.KILLED:
        reason = _why(work, outcome, rows, run)
        trace_path = traces / f"{job.fault.id}.jsonl"
        save(run.trace, trace_path)
        trace = str(trace_path)
    return Attempt(
        scenario=loaded.id,
        outcome=outcome,
        live=True,
        changed=tuple(work.changes),
        why=reason,
        seconds=run.seconds,
        trace=trace,
    )


def _outcome(work: FaultAtWork, rows: Sequence[Row], *, is_known: bool) -> Outcome:
    if not work.changes:
        return Outcome.NOT_APPLIED
    if is_known:
        return Outcome.MASKED
    if violation_count(rows) > work.before:
        return Outcome.KILLED
    return Outcome.MASKED if work.before else Outcome.SURVIVED


def _why(work: FaultAtWork, outcome: Outcome, rows: Sequence[Row], run: Run) -> str:
    """Return the reason why the rule did not find the fault, as far as the play shows it."""
    if outcome is Outcome.NOT_APPLIED:
        missing = f"it waited for {work.awaited}" if work.awaited else "it found no place"
        return f"nothing was changed: {missing}{_end_words(run)}"
    if outcome is Outcome.MASKED:
        return "the target is known to break the rule, or breaks it without the fault too"
    passed = sum(row.verdict is Verdict.PASS for row in rows)
    if passed:
        times = "once" if passed == 1 else f"{passed} times"
        return f"the rule judged {times} and found nothing wrong{_end_words(run)}"
    return f"the rule judged nothing{_end_words(run)}"


def _end_words(run: Run) -> str:
    """Return words about a play that ended differently from the scenario, else ""."""
    if run.has_died:
        return "; the server ended"
    if run.unmet is not None:
        return f"; the play stopped at the step {run.unmet.step}: {run.unmet.message}"
    return "" if run.is_complete else f"; the trace ended {run.ending.end}"
