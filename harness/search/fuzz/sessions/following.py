"""Repeats a document that went wrong: does it go wrong again, and how little of it is enough?"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from harness.search.fuzz.sessions.cuts import sound
from harness.search.fuzz.sessions.pinning import pinned
from harness.search.fuzz.sessions.play import Played, Problem
from harness.search.fuzz.sessions.shrinking import Wrong, shrunk
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark
from harness.trace.marks import StepBegins

# A step that waits in vain is no finding, only lost time.
STEP_BOUND = 2.0
MIN_STEP_SECONDS = 0.4
# A failure that needs a race may need some tries.
CONFIRMATIONS = 3
SHRINKING = 30.0
# Also for what is found at the very end of a search.
MIN_SHRINK_SECONDS = 10.0
# The whole of following one cause up takes so many times that, on a slow server too.
FOLLOWING = 1.5
# What goes wrong in a play, None where that is not what is looked for.
Shows = Callable[[Played], Problem | None]


class Player(Protocol):
    """Plays documents, for as long as nobody interrupts it.

    `fresh` is for a process that nothing was played on; `bound` is that of each step, in seconds,
    where a script that cannot go on tells nothing.
    """

    @property
    def at_once(self) -> int:
        """Return the number of documents played side by side."""
        ...

    def play(self, document: Json, *, fresh: bool = False, bound: float | None = None) -> Played:
        """Play one document."""
        ...

    def play_some(self, documents: list[Json], *, fresh: bool, bound: float) -> list[Played]:
        """Play some, side by side."""
        ...


@dataclass(frozen=True, slots=True)
class Small:
    """A document that was made small, how it was played, and what goes wrong then."""

    document: Json
    played: Played
    problem: Problem
    flaky: bool


def made_small(
    player: Player, document: Json, shows: Shows, seconds: float, mark: Mark | None = None
) -> Small | None:
    """The smallest document found that goes wrong too; None where this one does not again."""
    return _Following(player, shows, seconds, mark).follow(document)


def shrinking_within(seconds: float) -> float:
    """The seconds for making one failure small, in a search of so many seconds."""
    return min(SHRINKING, max(MIN_SHRINK_SECONDS, 0.4 * seconds))


class _Following:
    def __init__(self, player: Player, shows: Shows, seconds: float, mark: Mark | None) -> None:
        self._player = player
        self._shows = shows
        self._seconds = seconds
        self._end = time.monotonic() + FOLLOWING * seconds
        self._mark = mark

    def follow(self, document: Json) -> Small | None:
        small = self._confirmed(document)
        if small is None:
            return None
        small = replace(self._pinned(small), flaky=True)  # until it was seen again, each time
        # A process that was used before answers sooner; what it shows must show on a fresh one too.
        for fresh in (False, True):
            ladder = self._ladder(small, fresh=fresh)
            last = self._again(ladder[-1])
            if last is not None and (last.flaky or last.played.run.unmet is not None):
                last = self._again(self._pinned(last).document) or last
            if last is not None and not last.flaky:
                return last
            steady = self._latest(ladder)
            if last is not None:
                return steady or last
            small = steady or small
        return small

    def _fresh(self, document: Json) -> Small | None:
        """A play on a fresh process, None where nothing goes wrong."""
        return self._seen(self._player.play(document, fresh=True))

    def _fresh_ones(self, document: Json, number: int) -> list[Small | None]:
        """So many of them, side by side."""
        plays = self._player.play_some([document] * number, fresh=True, bound=STEP_BOUND)
        return [self._seen(played) for played in plays]

    def _seen(self, played: Played) -> Small | None:
        problem = self._shows(played)
        return None if problem is None else Small(played.document, played, problem, flaky=False)

    def _confirmed(self, document: Json) -> Small | None:
        small = self._fresh(document)
        if small is not None:
            return small
        return next((small for small in self._fresh_ones(document, CONFIRMATIONS) if small), None)

    def _pinned(self, found: Small) -> Small:
        """The same with waits for the questions that had come, if it goes wrong with them too.

        Where it does not, what had come in that play is tried: a step may have waited in vain.
        """
        played = found.played
        for _ in range(2):
            document = pinned(played)
            if document == found.document or not sound(document):
                break
            played = self._player.play(document, fresh=True)
            retried = self._seen(played)
            if retried is not None:
                return retried
        return found

    def _ladder(self, found: Small, *, fresh: bool) -> list[Json]:
        """The document, and each smaller one that went wrong too."""
        bound = bound_for(found.played)
        until = min(self._end, time.monotonic() + self._seconds)
        ladder = [found.document]

        def fails(candidates: list[Json]) -> list[Wrong | None]:
            plays = self._player.play_some(candidates, fresh=fresh, bound=bound)
            results = [(played, self._shows(played)) for played in plays]
            ladder.extend(played.document for played, problem in results if problem is not None)
            return [
                None if problem is None else Wrong(steps_begun(played), problem.step)
                for played, problem in results
            ]

        small = shrunk(
            found.document,
            fails,
            lambda: time.monotonic() >= until,
            shows=found.problem.step,
            at_once=self._player.at_once,
            mark=self._mark,
        )
        return [*ladder, small]

    def _again(self, document: Json) -> Small | None:
        """Return whether it goes wrong on fresh processes.

        It may do so not at all, now and then, or each time.
        """
        tries = [self._fresh(document)]
        if time.monotonic() < self._end:
            tries += self._fresh_ones(document, CONFIRMATIONS - 1)
        hits = [small for small in tries if small is not None]
        return replace(hits[-1], flaky=len(hits) < len(tries)) if hits else None

    def _latest(self, ladder: list[Json]) -> Small | None:
        """The smallest that goes wrong each time, of documents of which the last one does not."""
        low, high, steady = 0, len(ladder) - 1, None
        while high - low > 1 and time.monotonic() < self._end:
            middle = (low + high) // 2
            retried = self._again(ladder[middle])
            if retried is None or retried.flaky:
                high = middle
            else:
                low, steady = middle, retried
        return steady


def steps_begun(played: Played) -> int:
    """Return the number of steps of the client's side that were begun."""
    return len(list(played.run.trace.marks_of(StepBegins)))


def bound_for(played: Played) -> float:
    """The bound of a step in shrinking: several times what the longest one took, in seconds."""
    begun = [mark.at for mark in played.run.trace.marks_of(StepBegins)]
    longest = max((late - early for early, late in pairwise(begun)), default=0.0)
    return min(STEP_BOUND, max(MIN_STEP_SECONDS, 4 * longest))
