"""A scenario that failed is played again: is it the server, the company it kept, or chance?

The first verdict stands. The scenario is repeated on a fresh process; where that fails with the
same findings it is steady, and that is all. Where the two differ, and the first was played on a
process that others had used, both ways are tried once more: after the same scenarios as before,
and fresh. What failed reused and was kept fresh, both times, `leaks-state`; what else differed is
`unsteady`. Both are said beside the verdict and change none.

Here: which repetitions are made and what they mean. Not here: playing and judging (session).

Bounds, so that a server that hangs in every scenario is not waited for twice in each: what ended
because the server floods is not repeated; a finding that two scenarios of this worker confirmed is
believed without being repeated, until it turns out unsteady (a crash on a process that others had
used is looked at each time); of the scenarios that used the process
before, the last twenty are played, and none after one that fell silent; and where six repetitions
of a worker ended in silence, what fell silent is not repeated any more.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.judge.verdict import Level, Verdict
from harness.results.outcome import LEAKS, UNSTEADY, Finding, ScenarioOutcome
from harness.scenario.loader import Loaded

CRASH = "scenario.crash"
# So many scenarios confirm a finding before it is believed.
ENOUGH = 2
# So many of the scenarios that had used the process are played again before the repetition.
REPLAYED = 20
# After so many repetitions that ended in silence, silence is believed.
SILENT = 6


@dataclass(frozen=True, slots=True)
class Attempt:
    """One playing of a scenario: what failed in it, and which scenarios its process had served.

    A `silent` one waited for something in vain.
    """

    failed: frozenset[str]
    before: tuple[Loaded, ...] = ()
    silent: bool = False


def failures(outcome: ScenarioOutcome) -> frozenset[str]:
    """What makes an outcome a failure: the ids of its findings and MUST rules; empty for none."""
    findings = {finding.id for finding in outcome.findings if finding.counts}
    rules = {
        row.rule for row in outcome.rows if row.verdict is Verdict.FAIL and row.level is Level.MUST
    }
    return frozenset(findings | rules)


class Repeats:
    """Looks again at failed scenarios, for one worker.

    `play` plays a scenario on the current process, or on a fresh one where there is none, and
    retires it where the scenario fails; `retire` ends the current process.
    """

    def __init__(
        self, play: Callable[[Loaded], Attempt], retire: Callable[[], None], level: Level
    ) -> None:
        self._play = play
        self._retire = retire
        self._level = level
        self._confirmed: Counter[str] = Counter()
        self._silent = 0

    def of(self, loaded: Loaded, first: Attempt) -> list[Finding]:
        """Repeat a scenario as needed after its first attempt; what that showed."""
        if self._is_believed(first):
            return []
        if first.silent and self._silent >= SILENT:
            return []
        second = self._fresh(loaded)
        odd = first.failed ^ second.failed
        self._confirmed.update(first.failed & second.failed)
        if not odd:
            return []
        for name in odd:
            del self._confirmed[name]
        leaked = frozenset[str]()
        if first.before:
            reused = self._reused(loaded, first.before)
            # A process that none of them left usable is no reused one.
            leaked = (odd & first.failed & reused.failed) if reused.before else leaked
            leaked -= self._fresh(loaded).failed
        found: list[Finding] = []
        if leaked:
            found.append(self._leaks(loaded, leaked, first.before))
        if odd - leaked:
            found.append(self._unsteady(loaded, odd - leaked, first.failed))
        return found

    def _is_believed(self, first: Attempt) -> bool:
        """Whether others have confirmed what failed: it was seen, and may be waited for, often.

        A crash says nothing of who caused it, and is not waited for: where the process had served
        others, each is looked at.
        """
        if CRASH in first.failed and first.before:
            return False
        return all(self._confirmed[name] >= ENOUGH for name in first.failed)

    def _fresh(self, loaded: Loaded) -> Attempt:
        self._retire()
        return self._again(loaded)

    def _again(self, loaded: Loaded) -> Attempt:
        attempt = self._play(loaded)
        self._silent += attempt.silent
        return attempt

    def _reused(self, loaded: Loaded, before: Sequence[Loaded]) -> Attempt:
        self._retire()
        for one in before[-REPLAYED:]:
            if self._again(one).silent:
                break  # The process is gone, and with the next it may take as long.
        return self._again(loaded)

    def _leaks(self, loaded: Loaded, names: Iterable[str], before: Sequence[Loaded]) -> Finding:
        last = ", ".join(one.id for one in before[-3:])
        more = f" and {len(before) - 3} more" if len(before) > 3 else ""
        return Finding(
            LEAKS,
            f"{loaded.id} fails ({', '.join(sorted(names))}) on a process that served {last}{more} "
            "before, and not on a fresh one, twice each: something of an earlier conversation "
            "stays in the server",
            level=self._level,
            about=(*dict.fromkeys(one.id for one in before[-REPLAYED:]), loaded.id),
        )

    def _unsteady(self, loaded: Loaded, names: Iterable[str], first: frozenset[str]) -> Finding:
        came = ", ".join(
            f"{name} ({'at first' if name in first else 'when it was repeated'})"
            for name in sorted(names)
        )
        return Finding(
            UNSTEADY,
            f"{loaded.id} does not always give the same: {came}; the first verdict stands",
            level=self._level,
            about=(loaded.id,),
        )
