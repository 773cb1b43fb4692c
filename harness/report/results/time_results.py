"""Times of a run that have a limit: samples and percentiles, and findings for those over it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.judge.verdict import Level
from harness.report.results.outcome import SLOW_RUN, Finding, ScenarioOutcome
from harness.trace.time_limits import SHOWN_PERCENTS, TimeLimit, percentile, show_duration


@dataclass(frozen=True, slots=True)
class TimeResult:
    """The times of a run for one limit, in seconds.

    At most `within` seconds for `percent` of the `samples`, which took `took`. `step` is the place
    of a scenario's step, "" for a limit of the profile; `slowest` the scenario of the longest time.
    """

    name: str
    within: float
    percent: float
    level: Level
    samples: int
    p50: float
    p95: float
    max: float
    took: float
    step: str = ""
    slowest: str = ""

    @property
    def is_kept(self) -> bool:
        """Return whether the limit is kept."""
        return self.took <= self.within

    def words(self) -> str:
        """Return the result as one line without the name."""
        p50, p95, longest = map(show_duration, (self.p50, self.p95, self.max))
        kept = "" if self.is_kept else f"OVER, {self.level}: "
        return (
            f"{kept}p{self.percent:g} {show_duration(self.took)}, at most "
            f"{show_duration(self.within)}; samples: {self.samples}, p50 {p50}, p95 {p95}, "
            f"max {longest}"
        )


def time_results(outcomes: Iterable[ScenarioOutcome]) -> list[TimeResult]:
    """Return the results of all limits, in the order of their first times."""
    samples: dict[TimeLimit, list[tuple[float, str]]] = defaultdict(list)
    for outcome in outcomes:
        for times in outcome.times:
            samples[times.limit] += [(seconds, outcome.id) for seconds in times.seconds]
    return [_result(limit, sorted(timed)) for limit, timed in samples.items()]


def _result(limit: TimeLimit, timed: list[tuple[float, str]]) -> TimeResult:
    seconds = [one for one, _ in timed]
    return TimeResult(
        limit.name,
        limit.seconds,
        limit.percent,
        Level.MUST if limit.is_promised else Level.SHOULD,
        len(seconds),
        *(percentile(seconds, percent) for percent in SHOWN_PERCENTS),
        took=percentile(seconds, limit.percent),
        step=limit.step,
        slowest=timed[-1][1],
    )


def slow_run_findings(results: Iterable[TimeResult]) -> Iterator[Finding]:
    """Yield a finding for each limit of a profile that is not kept; those of steps have theirs."""
    for one in results:
        if not one.step and not one.is_kept:
            message = f"{one.name}: {one.words().partition(': ')[2]}; the longest in {one.slowest}"
            kind = f"{one.name} p{one.percent:g}"
            yield Finding(SLOW_RUN, message, level=one.level, about=(one.slowest,), kind=kind)
