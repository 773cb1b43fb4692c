"""Limits of time: those of a scenario's steps and of the profile, measured in one play.

Times that our own side stretches are not the server's: a scenario whose model waits or fails, whose
commands wait at a pipe, or whose client reads slowly gives none for the limits of a profile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.client.target.profile import Profile
from harness.judge.verdict import Level
from harness.model.parts import Delay, Disconnect, Hold, Malformed
from harness.play.run import Run
from harness.report.results.outcome import SLOW_STEP, Finding
from harness.scenario.client_steps import ModelListensStep, SlowReaderStep
from harness.scenario.loader import Loaded
from harness.scenario.model import Scenario
from harness.scenario.race_id import RaceId
from harness.trace.surfaces import SESSION
from harness.trace.time_limits import Times, measure, show_duration

_OURS = (Delay, Disconnect, Hold, Malformed)


def measure_times(run: Run, loaded: Loaded, profile: Profile) -> list[Times]:
    """Return the times of a play that have a limit, those of steps first; none in a race."""
    if loaded.surface != SESSION or loaded.scenario.faults or RaceId.parse(loaded.id).action:
        return []
    promised = profile.within == "MUST"
    times = [replace(one, limit=replace(one.limit, is_promised=promised)) for one in run.cast.times]
    if not is_stretched(loaded.scenario):
        times += [measure(run.trace, row.limit) for row in profile.times]
    return [one for one in times if one.seconds]


def is_stretched(scenario: Scenario) -> bool:
    """Return whether the harness's own side takes part of the times of a scenario."""
    waits = any(isinstance(step, SlowReaderStep | ModelListensStep) for step in scenario.steps)
    scripts = scenario.scripts().values()
    paced = any(step.pace or step.fail for script in scripts for step in script)
    held = any(isinstance(entry, _OURS) for _, entry in scenario.model_entries())
    return waits or paced or held or bool(scenario.workspace.pipes)


def slow_step_findings(
    times: Sequence[Times], loaded: Loaded, profile: Profile
) -> Iterator[Finding]:
    """Yield a finding for each step whose message came later than it may."""
    for one in times:
        if one.limit.step and one.is_slow:
            took, limit = show_duration(max(one.seconds)), show_duration(one.limit.seconds)
            message = f"{one.limit.name}: {took}, also when measured again; within: {limit}"
            line = int(one.limit.step.rpartition(":")[2])
            yield Finding(SLOW_STEP, message, line, Level(profile.within))
