"""The number of plays of a scenario, and their deadline: `--repeat`, `--retries`, `--max-time`.

What differs is told as `unsteady`, whatever the verdict.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.errors import UsageError
from harness.judge.verdict import GRAVITY, Level, Verdict
from harness.play.repeat import failures
from harness.report.results.outcome import LEAKS, UNSTEADY, Finding, RaceOutcome, ScenarioOutcome

_JUDGED: Final = (Verdict.PASS, Verdict.KNOWN, Verdict.FAIL)

Play = Callable[[], ScenarioOutcome]


@dataclass(frozen=True, slots=True)
class PlayLimits:
    """The number of plays, and their deadline.

    `repeat` plays of each scenario; or `retries` at most of one that failed. None is begun after
    `deadline`, a time of `time.monotonic`, which all processes of a machine share; None for no such
    time. It is `max_time` seconds after the run began.
    """

    repeat: int = 1
    retries: int = 0
    max_time: float | None = None
    deadline: float | None = None

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is begun."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def unplayed_reason(self) -> str:
        """Return why something was not played after the deadline."""
        return f"the {self.max_time:g} s of --max-time were over before it was its turn"


def read_play_limits(repeat: int, retries: int, max_time: float | None, deadline: float | None) -> PlayLimits:
    """Read the options; `deadline` is that of the run's first process, if it has one.

    Raises `UsageError`.
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
    """The ids of what makes an outcome fail; with `strict` those of SHOULD rules too."""
    should = {
        row.rule
        for row in outcome.rows
        if strict and row.verdict is Verdict.FAIL and row.level is Level.SHOULD
    }
    return failures(outcome) | should


class _Plays:
    """Several plays of one scenario, and the stored trace of each: one writes over the other."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self.outcomes: list[ScenarioOutcome] = []
        self._traces: list[bytes] = []

    def add(self, outcome: ScenarioOutcome) -> frozenset[str]:
        """One more; gives what makes it fail."""
        self.outcomes.append(outcome)
        self._traces.append(Path(outcome.trace).read_bytes() if outcome.trace else b"")
        return self.failing[-1]

    @property
    def failing(self) -> list[frozenset[str]]:
        """Return what makes each of them fail."""
        return [failing_ids(one, strict=self._strict) for one in self.outcomes]

    def choose(self, chosen: ScenarioOutcome) -> ScenarioOutcome:
        """The one that speaks for the scenario, with the number of all, and its own trace."""
        at = next(number for number, one in enumerate(self.outcomes) if one is chosen)
        for path in {chosen.trace, chosen.kept} - {""}:
            if at != len(self.outcomes) - 1:
                Path(path).write_bytes(self._traces[at])
        chosen.runs, chosen.failed_runs = len(self.outcomes), sum(map(bool, self.failing))
        chosen.seconds = sum(one.seconds for one in self.outcomes)
        return chosen


def repeated(play: Play, limits: PlayLimits, *, strict: bool, level: Level) -> ScenarioOutcome:
    """Play it `repeat` times; the gravest play speaks for the scenario.

    One that does not apply, or cannot be judged, is not played again.
    """
    plays = _Plays(strict=strict)
    for _ in range(limits.repeat):
        plays.add(play())
        if plays.outcomes[0].verdict not in _JUDGED or limits.is_over:
            break
    gravest = max(
        plays.outcomes,
        key=lambda one: (GRAVITY[one.verdict], len(failing_ids(one, strict=strict))),
    )
    chosen = plays.choose(gravest)
    if len(set(plays.failing)) > 1:
        chosen.findings.append(_unsteady(chosen, plays.failing, "the gravest stands", level))
    return chosen


def retried(
    first: ScenarioOutcome, replay: Play, limits: PlayLimits, *, strict: bool, level: Level
) -> ScenarioOutcome:
    """Play one that failed again, until it passes or has been tried often enough.

    Where it passed at last, that play speaks for it, and what failed before is told.
    """
    plays = _Plays(strict=strict)
    if not plays.add(first) or first.verdict not in _JUDGED:
        return first
    for _ in range(limits.retries):
        if limits.is_over:
            break
        outcome = replay()
        if outcome.verdict not in _JUDGED:
            break  # The server is gone: that says nothing of this scenario.
        if not plays.add(outcome):
            passed = plays.choose(outcome)
            leaks = [one for one in first.findings if one.id == LEAKS]
            told = "it counts as what it was at last"
            passed.findings += [*leaks, _unsteady(passed, plays.failing, told, level)]
            return passed
    chosen = plays.choose(first)
    if len(set(plays.failing)) > 1 and not any(one.id == UNSTEADY for one in chosen.findings):
        chosen.findings.append(_unsteady(chosen, plays.failing, "the first stands", level))
    return chosen


def _unsteady(
    outcome: ScenarioOutcome, failed: Sequence[frozenset[str]], stands: str, level: Level
) -> Finding:
    counts = Counter(name for one in failed for name in one)
    odd = {name: count for name, count in counts.items() if count < len(failed)}
    came = ", ".join(f"{name} (in {count} of {len(failed)} plays)" for name, count in odd.items())
    message = f"{outcome.id} does not always give the same: {came}; {stands}"
    return Finding(UNSTEADY, message, level=level, about=(outcome.id,))


def unplayed_scenario(outcome: ScenarioOutcome, limits: PlayLimits) -> ScenarioOutcome:
    """An outcome made for a scenario that was not begun, since the time was over."""
    outcome.verdict, outcome.reason = Verdict.NOT_EXERCISED, limits.unplayed_reason
    outcome.over_time = True
    return outcome


def unplayed_race(outcome: RaceOutcome, limits: PlayLimits) -> RaceOutcome:
    """The same for a race."""
    outcome.verdict, outcome.reason = Verdict.NOT_EXERCISED, limits.unplayed_reason
    outcome.over_time = True
    return outcome
