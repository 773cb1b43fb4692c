"""Repetition of failed scenarios, to tell a steady failure from leaked state and from chance.

The first verdict stands. The scenario is repeated on a fresh process; if that fails with the same
findings, the failure is steady and nothing more is done. If the two differ, and the first attempt
ran on a process that other scenarios had used, both situations are tried once more: after the same
scenarios as before, and on a fresh process. A finding that appeared on the used process both times
and on the fresh one neither time is `leaks-state`; any other difference is `unsteady`. Both are
reported beside the verdict and do not change it.

Repetitions are limited, so that a server that hangs in every scenario does not cost two more
timeouts in each. A run that ended because the server floods is not repeated. A finding that two
scenarios of this worker confirmed counts without a repetition, until it turns out unsteady; but a
crash on a process that others had used is always repeated. Of the scenarios that used the process
before, the last twenty are played again, and none after one that timed out. After six repetitions
that timed out, a worker does not repeat timeouts any more.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.judge.verdict import Level, Verdict
from harness.report.results.outcome import LEAKS, SLOW_STEP, UNSTEADY, Finding, ScenarioOutcome
from harness.scenario.loader import Loaded

CRASH = "scenario.crash"
# Scenarios that must confirm a finding before it counts without a repetition.
SCENARIOS_TO_CONFIRM = 2
# Earlier scenarios of the process that are played again before the repetition.
MAX_REPLAYED = 20
# Repetitions that timed out, after which timeouts are not repeated.
MAX_SILENT_REPEATS = 6


@dataclass(frozen=True, slots=True)
class Attempt:
    """One play of a scenario: its failures, and the scenarios that its process had served before.

    `is_silent` is whether it timed out.
    """

    failures: frozenset[str]
    served_before: tuple[Loaded, ...] = ()
    is_silent: bool = False


def failures(outcome: ScenarioOutcome) -> frozenset[str]:
    """Return the ids of findings and of broken MUST rules that make an outcome fail.

    Times are left out: they were measured again already.
    """
    counting = (finding.id for finding in outcome.findings if finding.counts)
    findings = {finding for finding in counting if finding != SLOW_STEP}
    rules = {
        row.rule for row in outcome.rows if row.verdict is Verdict.FAIL and row.level is Level.MUST
    }
    return frozenset(findings | rules)


class Repeats:
    """Repetition of failed scenarios, for one worker.

    `play` plays a scenario on the current process, or on a fresh one if there is none, and ends it
    if the scenario fails; `retire` ends the current process. `confirmed` counts the scenarios that
    confirmed a failure, and may be shared with other lanes.
    """

    def __init__(
        self,
        play: Callable[[Loaded], Attempt],
        retire: Callable[[], None],
        level: Level,
        confirmed: Counter[str] | None = None,
    ) -> None:
        self._play = play
        self._retire = retire
        self._level = level
        self._confirmed = Counter[str]() if confirmed is None else confirmed
        self._silent = 0

    def repeat(self, loaded: Loaded, first: Attempt) -> list[Finding]:
        """Repeat a scenario as needed after its first attempt; return findings on differences."""
        if self._is_believed(first):
            return []
        if first.is_silent and self._silent >= MAX_SILENT_REPEATS:
            return []
        second = self._play_on_fresh(loaded)
        odd = first.failures ^ second.failures
        self._confirmed.update(first.failures & second.failures)
        if not odd:
            return []
        for name in odd:
            del self._confirmed[name]
        leaked = frozenset[str]()
        if first.served_before:
            reused = self._play_on_used(loaded, first.served_before)
            # If each earlier scenario made its process unusable, the repetition ran on a fresh one.
            leaked = (odd & first.failures & reused.failures) if reused.served_before else leaked
            leaked -= self._play_on_fresh(loaded).failures
        findings: list[Finding] = []
        if leaked:
            findings.append(self._leak_finding(loaded, leaked, first.served_before))
        if odd - leaked:
            findings.append(self._unsteady_finding(loaded, odd - leaked, first.failures))
        return findings

    def confirm(self, failed: frozenset[str]) -> None:
        """Count failures that were repeated on a fresh process in another session."""
        self._confirmed.update(failed)

    def is_steady(self, outcome: ScenarioOutcome) -> bool:
        """Return whether only rules failed that are known to be broken on a fresh process too."""
        if any(finding.counts for finding in outcome.findings):
            return False
        return all(self._confirmed[name] >= SCENARIOS_TO_CONFIRM for name in failures(outcome))

    def _is_believed(self, first: Attempt) -> bool:
        """Return whether each finding was confirmed often enough to need no repetition.

        A crash does not show its cause, and costs no timeout: on a process that had served other
        scenarios it is always repeated.
        """
        if CRASH in first.failures and first.served_before:
            return False
        return all(self._confirmed[name] >= SCENARIOS_TO_CONFIRM for name in first.failures)

    def _play_on_fresh(self, loaded: Loaded) -> Attempt:
        self._retire()
        return self._play_and_count(loaded)

    def _play_and_count(self, loaded: Loaded) -> Attempt:
        attempt = self._play(loaded)
        self._silent += attempt.is_silent
        return attempt

    def _play_on_used(self, loaded: Loaded, before: Sequence[Loaded]) -> Attempt:
        self._retire()
        for earlier in before[-MAX_REPLAYED:]:
            if self._play_and_count(earlier).is_silent:
                break  # Its process has been ended, and the next scenario could take as long.
        return self._play_and_count(loaded)

    def _leak_finding(
        self, loaded: Loaded, names: Iterable[str], before: Sequence[Loaded]
    ) -> Finding:
        last = ", ".join(earlier.id for earlier in before[-3:])
        more = f" and {len(before) - 3} more" if len(before) > 3 else ""
        return Finding(
            LEAKS,
            f"{loaded.id} fails ({', '.join(sorted(names))}) on a process that served {last}{more} "
            "before, and not on a fresh one, twice each: something of an earlier conversation "
            "stays in the server",
            level=self._level,
            about=(*dict.fromkeys(earlier.id for earlier in before[-MAX_REPLAYED:]), loaded.id),
        )

    def _unsteady_finding(
        self, loaded: Loaded, names: Iterable[str], first: frozenset[str]
    ) -> Finding:
        words = ", ".join(
            f"{name} ({'at first' if name in first else 'when it was repeated'})"
            for name in sorted(names)
        )
        return Finding(
            UNSTEADY,
            f"{loaded.id} does not always give the same result: {words}; the first verdict stands",
            level=self._level,
            about=(loaded.id,),
        )
