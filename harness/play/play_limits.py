"""Number of plays of a scenario, and their deadline: `--repeat`, `--retries`, `--max-time`.

Plays that differ are reported as `unsteady`, whatever the verdict.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.errors import UsageError
from harness.judge.verdict import GRAVITY, Level, Verdict
from harness.play.repeats import failures
from harness.report.results.outcome import LEAKS, UNSTEADY, Finding, RaceOutcome, ScenarioOutcome

_JUDGED: Final = (Verdict.PASS, Verdict.KNOWN, Verdict.FAIL)

Play = Callable[[], ScenarioOutcome]


@dataclass(frozen=True, slots=True)
class PlayLimits:
    """Number of plays, and their deadline.

    There are `repeat` plays of each scenario, or at most `retries` after a failed one. None begins
    after `deadline`, a time of `time.monotonic`, which all processes of a machine share; None for
    no deadline. It is `max_time` seconds after the run began.
    """

    repeat: int = 1
    retries: int = 0
    max_time: float | None = None
    deadline: float | None = None

    @property
    def is_over(self) -> bool:
        """Return whether the deadline has passed, after which no play begins."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def unplayed_reason(self) -> str:
        """Return the reason for a scenario that was not played before the deadline."""
        return f"the {self.max_time:g} s of --max-time were over before it was its turn"


def read_play_limits(
    repeat: int, retries: int, max_time: float | None, deadline: float | None
) -> PlayLimits:
    """Return the limits; `deadline` is that of the run's first process, if it has one.

    Raises `UsageError` for an option out of range, and for `--repeat` with `--retries`.
    """
    if repeat < 1:
        raise UsageError(f"--repeat {repeat}: give a number of plays, 1 or more")
    if retries < 0:
        raise UsageError(f"--retries {retries}: give a number of retries, 0 or more")
    if repeat > 1 and retries:
        raise UsageError("--repeat and --retries: give one of them; each play of a repeat counts")
    if max_time is not None and not 0 < max_time < float("inf"):
        raise UsageError(f"--max-time {max_time:g}: give a number of seconds greater than 0")
    if max_time is not None and deadline is None:
        deadline = time.monotonic() + max_time
    return PlayLimits(repeat, retries, max_time, deadline)


def failing_ids(outcome: ScenarioOutcome, *, strict: bool) -> frozenset[str]:
    """Return the ids of an outcome's failures; with `strict` those of SHOULD rules too."""
    should = {
        row.rule
        for row in outcome.rows
        if strict and row.verdict is Verdict.FAIL and row.level is Level.SHOULD
    }
    return failures(outcome) | should


class _Plays:
    """Several plays of one scenario, with the stored trace of each."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self.outcomes: list[ScenarioOutcome] = []
        self._traces: list[bytes] = []

    def add(self, outcome: ScenarioOutcome) -> frozenset[str]:
        """Record one play and return its failures."""
        self.outcomes.append(outcome)
        self._traces.append(Path(outcome.trace).read_bytes() if outcome.trace else b"")
        return self.failure_ids[-1]

    @property
    def failure_ids(self) -> list[frozenset[str]]:
        """Return the failures of each play."""
        return [failing_ids(outcome, strict=self._strict) for outcome in self.outcomes]

    def choose(self, chosen: ScenarioOutcome) -> ScenarioOutcome:
        """Return the chosen play; restore its trace file, and add the counts over all plays."""
        index = next(number for number, outcome in enumerate(self.outcomes) if outcome is chosen)
        for path in {chosen.trace, chosen.kept} - {""}:
            if index != len(self.outcomes) - 1:
                Path(path).write_bytes(self._traces[index])
        chosen.runs, chosen.failed_runs = len(self.outcomes), sum(map(bool, self.failure_ids))
        chosen.seconds = sum(outcome.seconds for outcome in self.outcomes)
        return chosen


def play_repeatedly(
    play: Play, limits: PlayLimits, *, strict: bool, level: Level
) -> ScenarioOutcome:
    """Play a scenario `repeat` times and return the most severe outcome.

    A scenario that does not apply, or cannot be judged, is not played again.
    """
    plays = _Plays(strict=strict)
    for _ in range(limits.repeat):
        plays.add(play())
        if plays.outcomes[0].verdict not in _JUDGED or limits.is_over:
            break
    gravest = max(
        plays.outcomes,
        key=lambda outcome: (GRAVITY[outcome.verdict], len(failing_ids(outcome, strict=strict))),
    )
    chosen = plays.choose(gravest)
    if len(set(plays.failure_ids)) > 1:
        chosen.findings.append(
            _unsteady_finding(chosen, plays.failure_ids, "the most severe counts", level)
        )
    return chosen


def retry_failed(
    first: ScenarioOutcome, replay: Play, limits: PlayLimits, *, strict: bool, level: Level
) -> ScenarioOutcome:
    """Replay a failed scenario until it passes or `retries` are used up; return what counts.

    That is the pass, with the earlier failures as findings, else the first outcome.
    """
    plays = _Plays(strict=strict)
    if not plays.add(first) or first.verdict not in _JUDGED:
        return first
    for _ in range(limits.retries):
        if limits.is_over:
            break
        outcome = replay()
        if outcome.verdict not in _JUDGED:
            break  # The server is gone, which says nothing about this scenario.
        if not plays.add(outcome):
            passed = plays.choose(outcome)
            leaks = [finding for finding in first.findings if finding.id == LEAKS]
            note = "the last play counts"
            passed.findings += [*leaks, _unsteady_finding(passed, plays.failure_ids, note, level)]
            return passed
    chosen = plays.choose(first)
    if len(set(plays.failure_ids)) > 1 and not any(
        finding.id == UNSTEADY for finding in chosen.findings
    ):
        chosen.findings.append(
            _unsteady_finding(chosen, plays.failure_ids, "the first counts", level)
        )
    return chosen


def _unsteady_finding(
    outcome: ScenarioOutcome, failed: Sequence[frozenset[str]], note: str, level: Level
) -> Finding:
    counts = Counter(name for names in failed for name in names)
    unsteady_counts = {name: count for name, count in counts.items() if count < len(failed)}
    words = ", ".join(
        f"{name} (in {count} of {len(failed)} plays)" for name, count in unsteady_counts.items()
    )
    message = f"{outcome.id} does not always give the same result: {words}; {note}"
    return Finding(UNSTEADY, message, level=level, about=(outcome.id,))


def unplayed_scenario(outcome: ScenarioOutcome, limits: PlayLimits) -> ScenarioOutcome:
    """Return the outcome, marked as not begun before the deadline."""
    outcome.verdict, outcome.reason = Verdict.NOT_EXERCISED, limits.unplayed_reason
    outcome.over_time = True
    return outcome


def unplayed_race(outcome: RaceOutcome, limits: PlayLimits) -> RaceOutcome:
    """Return the outcome of a race, marked as not begun before the deadline."""
    outcome.verdict, outcome.reason = Verdict.NOT_EXERCISED, limits.unplayed_reason
    outcome.over_time = True
    return outcome
