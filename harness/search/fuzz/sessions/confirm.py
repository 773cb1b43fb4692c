"""Follow-up of a failing document: confirm the failure, and shrink the document."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from harness.search.fuzz.sessions.cuts import is_loadable
from harness.search.fuzz.sessions.play import Played, Problem
from harness.search.fuzz.sessions.question_order import pin_order
from harness.search.fuzz.sessions.shrinking import FailurePoint, shrink_document
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark
from harness.trace.marks import StepBegins

# Bounds of a step: a step that times out is no finding, only lost time.
MAX_STEP_SECONDS = 2.0
MIN_STEP_SECONDS = 0.4
# Plays to confirm a failure, which may depend on a race.
CONFIRMATIONS = 3
MAX_SHRINK_SECONDS = 30.0
# Also granted to failures found at the end of a search.
MIN_SHRINK_SECONDS = 10.0
# Maximum time of a follow-up, as a multiple of the time for shrinking.
FOLLOW_UP_FACTOR = 1.5
# Returns the problem of a play that is followed up, None if the play does not show it.
Shows = Callable[[Played], Problem | None]


class Player(Protocol):
    """Player of documents.

    `fresh` requires an unused process; `bound` limits each step, in seconds, if timeouts are of no
    interest.
    """

    @property
    def at_once(self) -> int:
        """Return the number of documents that are played at once."""
        ...

    def play(self, document: Json, *, fresh: bool = False, bound: float | None = None) -> Played:
        """Play one document."""
        ...

    def play_some(self, documents: list[Json], *, fresh: bool, bound: float) -> list[Played]:
        """Play several documents at once; return the plays in the same order."""
        ...


@dataclass(frozen=True, slots=True)
class Small:
    """A shrunk document with its play and problem; `flaky` if not every play failed."""

    document: Json
    result: Played
    problem: Problem
    flaky: bool


def make_small(
    player: Player, document: Json, shows: Shows, seconds: float, mark: Mark | None = None
) -> Small | None:
    """Return the smallest failing document found; None if the failure does not recur."""
    return _FollowUp(player, shows, seconds, mark).follow(document)


def shrinking_within(seconds: float) -> float:
    """Return the seconds for shrinking one failure in a search of `seconds`."""
    return min(MAX_SHRINK_SECONDS, max(MIN_SHRINK_SECONDS, 0.4 * seconds))


class _FollowUp:
    def __init__(self, player: Player, shows: Shows, seconds: float, mark: Mark | None) -> None:
        self._player = player
        self._shows = shows
        self._seconds = seconds
        self._end = time.monotonic() + FOLLOW_UP_FACTOR * seconds
        self._mark = mark

    def follow(self, document: Json) -> Small | None:
        small = self._confirm(document)
        if small is None:
            return None
        small = replace(self._pin(small), flaky=True)  # until all retries fail
        # A used process answers faster; a failure on it must recur on a fresh one.
        for fresh in (False, True):
            ladder = self._ladder(small, fresh=fresh)
            last = self._retry(ladder[-1])
            if last is not None and (last.flaky or last.result.run.unmet is not None):
                last = self._retry(self._pin(last).document) or last
            if last is not None and not last.flaky:
                return last
            steady = self._last_steady(ladder)
            if last is not None:
                return steady or last
            small = steady or small
        return small

    def _play_fresh(self, document: Json) -> Small | None:
        """Play on a fresh process; None if the document does not fail."""
        return self._small_of(self._player.play(document, fresh=True))

    def _play_fresh_times(self, document: Json, number: int) -> list[Small | None]:
        """Play `number` times on fresh processes, several at once."""
        plays = self._player.play_some([document] * number, fresh=True, bound=MAX_STEP_SECONDS)
        return [self._small_of(played) for played in plays]

    def _small_of(self, played: Played) -> Small | None:
        problem = self._shows(played)
        return None if problem is None else Small(played.document, played, problem, flaky=False)

    def _confirm(self, document: Json) -> Small | None:
        small = self._play_fresh(document)
        if small is not None:
            return small
        return next(
            (small for small in self._play_fresh_times(document, CONFIRMATIONS) if small), None
        )

    def _pin(self, small: Small) -> Small:
        """Add waits for the server requests that came, if the document still fails with them.

        If it does not, this is tried once more with that play's requests: a step may have timed
        out.
        """
        played = small.result
        for _ in range(2):
            document = pin_order(played)
            if document == small.document or not is_loadable(document):
                break
            played = self._player.play(document, fresh=True)
            retried = self._small_of(played)
            if retried is not None:
                return retried
        return small

    def _ladder(self, first: Small, *, fresh: bool) -> list[Json]:
        """Return the document, and each smaller failing one that shrinking found."""
        bound = step_bound(first.result)
        until = min(self._end, time.monotonic() + self._seconds)
        ladder = [first.document]

        def fails(candidates: list[Json]) -> list[FailurePoint | None]:
            plays = self._player.play_some(candidates, fresh=fresh, bound=bound)
            results = [(played, self._shows(played)) for played in plays]
            ladder.extend(played.document for played, problem in results if problem is not None)
            return [
                None if problem is None else FailurePoint(steps_begun(played), problem.step)
                for played, problem in results
            ]

        small = shrink_document(
            first.document,
            fails,
            lambda: time.monotonic() >= until,
            shows=first.problem.step,
            at_once=self._player.at_once,
            mark=self._mark,
        )
        return [*ladder, small]

    def _retry(self, document: Json) -> Small | None:
        """Play again on fresh processes; None if no play fails, `flaky` if only some do."""
        tries = [self._play_fresh(document)]
        if time.monotonic() < self._end:
            tries += self._play_fresh_times(document, CONFIRMATIONS - 1)
        hits = [small for small in tries if small is not None]
        return replace(hits[-1], flaky=len(hits) < len(tries)) if hits else None

    def _last_steady(self, ladder: list[Json]) -> Small | None:
        """Return the smallest document that fails each time, by bisection; None if none does."""
        low, high, steady = 0, len(ladder) - 1, None
        while high - low > 1 and time.monotonic() < self._end:
            middle = (low + high) // 2
            retried = self._retry(ladder[middle])
            if retried is None or retried.flaky:
                high = middle
            else:
                low, steady = middle, retried
        return steady


def steps_begun(played: Played) -> int:
    """Return the number of client steps that began."""
    return len(list(played.run.trace.marks_of(StepBegins)))


def step_bound(played: Played) -> float:
    """Return the seconds for a step while shrinking: several times the longest step of a play."""
    begun = [mark.at for mark in played.run.trace.marks_of(StepBegins)]
    longest = max((late - early for early, late in pairwise(begun)), default=0.0)
    return min(MAX_STEP_SECONDS, max(MIN_STEP_SECONDS, 4 * longest))
