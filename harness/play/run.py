"""Result of playing one scenario, before it is judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.judge.verdict import Row
from harness.model.model import ScriptedModel
from harness.report.results.outcome import Finding
from harness.scenario.ending import TraceEnding
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast, StepFailure
from harness.trace.trace import End, Trace


@dataclass(slots=True)
class Run:
    """The result of playing one scenario, before it is judged.

    `bound` is the scenario's, in seconds; `status` is the exit status of a server that ended by
    itself, None while it ran; `overflow` says which bound a flood exceeded; `served_before` are the
    scenarios that its process had served, or an earlier one over the same home. `idle_faults` are
    the indexes of the scenario's faults that never acted, each with what it waited for. A run that
    `is_hurried` had short bounds. `rows` are those of all rules, None if it was not judged yet.
    """

    trace: Trace
    cast: Cast
    unmet: StepFailure | None
    ending: TraceEnding
    model: ScriptedModel
    cwd: Path
    stderr: str
    seconds: float
    bound: float = 0.0
    overflow: str = ""
    status: int | None = None
    served_before: tuple[Loaded, ...] = ()
    is_hurried: bool = False
    idle_faults: Mapping[int, str] = field(default_factory=dict[int, str])
    findings: list[Finding] = field(default_factory=list[Finding])
    rows: list[Row] | None = None

    @property
    def awaited_notification(self) -> str:
        """Return the notification for which a step timed out, "" if there was none."""
        return self.unmet.wait_target.notification if self.unmet else ""

    @property
    def has_died(self) -> bool:
        """Return whether the server ended by itself, or closed its output."""
        return self.ending.end is End.EXITED

    @property
    def is_complete(self) -> bool:
        """Return whether the trace came to the end that the scenario intended."""
        ended_by_us = self.ending.end is End.CLOSED and not self.overflow
        return self.ending.end is End.QUIESCENT or ended_by_us

    @property
    def has_flooded(self) -> bool:
        """Return whether the server was still writing when a bound was reached."""
        return bool(self.overflow) or (
            bool(self.ending.liveness) and not self.ending.outstanding_work
        )
