"""A document that goes wrong, made smaller: fewer steps, a shorter model's side, fewer files.

Steps are left out in this order: what comes after it went wrong, what was done long before,
threads, turns and connections, what happens within turns, other steps, half of them at once and
fewer and fewer, steps that only order others, then the model's side. Whether the rest still goes
wrong is asked of a function, of several documents at once.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from harness.search.fuzz import smaller_params
from harness.search.fuzz.sessions import cuts
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark

# A case of so many steps is small enough; that it goes wrong each time is worth more.
SMALL = 10
# So many times in a row something goes wrong that is not called chance.
STEADY = 3
# When each of some documents went wrong, None for one that did not.
Fails = Callable[[list[Json]], list["Wrong | None"]]
Stop = Callable[[], bool]
# An edit of a document at the given one of its places; None where it changes nothing.
Edit = Callable[[Json, int], Json | None]


class Wrong(NamedTuple):
    """The steps begun when it went wrong, and the step at which it showed, 0 for unknown."""

    begun: int
    shows: int = 0


def shrunk(
    document: Json,
    fails: Fails,
    stop: Stop = lambda: False,
    *,
    shows: int = 0,
    at_once: int = 1,
    mark: Mark | None = None,
) -> Json:
    """The smallest document found that `fails`; `stop` ends the search for a smaller one.

    `fails` is given up to `at_once` documents. `shows` is the number of the step at which it showed
    that something is wrong, 0 for unknown. With `mark` the params of requests are made smaller too.
    """
    return _Shrinker(copy.deepcopy(document), fails, stop, at_once, mark).shrink(shows)


class _Shrinker:
    def __init__(
        self, document: Json, fails: Fails, stop: Stop, at_once: int, mark: Mark | None
    ) -> None:
        self._best = document
        self._fails = fails
        self._stop = stop
        self._at_once = at_once
        self._mark = mark
        self._tried: set[str] = set()
        self._shows = 0

    def shrink(self, shows: int) -> Json:
        """Pass after pass, until none helps."""
        self._any([cuts.tidied(self._best)])
        self._shows = shows
        self._earlier()
        while not self._stop():
            before = repr(self._best)
            self._later()
            self._earlier()
            self._any([cuts.with_one_client(self._best)])
            self._each(lambda document: len(cuts.kinds(document)), cuts.without_kind)
            self._each(cuts.steps_of, cuts.without_fork)
            for kind in ("start_thread", "connect", "request", "start_turn"):
                self._each(cuts.steps_of, partial(cuts.without_whole, kind))
            self._earlier()
            self._each(cuts.steps_of, cuts.with_plain_turn)
            size = max(1, len(cuts.others(self._best)) // 2)
            while size and not self._stop():
                self._each(partial(cuts.pieces, size), partial(cuts.without_piece, size))
                size //= 2
            self._less_order()
            for candidate in cuts.one_after_another(self._best):
                self._steadily(candidate)
            self._each(cuts.model_steps, cuts.without_model_step)
            self._each(lambda document: len(list(cuts.elements(document))), cuts.without_element)
            self._no_conditions()
            if self._mark is not None:
                edit = partial(cuts.with_smaller_params, self._mark)
                self._each(lambda document: len(smaller_params.places(document)), edit)
            if repr(self._best) == before:
                break
        return self._best

    def _earlier(self) -> None:
        """Leave out what was done after it showed."""
        end = cuts.steps_of(self._best)
        if 0 < self._shows < end:
            self._any([cuts.without_steps(self._best, range(self._shows, end))])

    def _later(self) -> None:
        """Leave out what was done long before: what goes wrong mostly has its cause close by."""
        number, hit = 0, True
        while hit and not self._stop() and number != cuts.steps_of(self._best):
            number = cuts.steps_of(self._best)
            places = [number - number // part for part in (8, 4, 2)] + [number // 4]
            hit = self._any([cuts.since(self._best, index) for index in places])

    def _less_order(self) -> None:
        """Leave out waits and answers of the client, where it then goes wrong each time.

        They say what comes before what, and without one of them it may well go wrong by chance: a
        small case keeps all that it has.
        """
        index = len(cuts.ordering(self._best))
        while index and cuts.steps_of(self._best) > SMALL and not self._stop():
            index -= 1
            self._steadily(cuts.without_steps(self._best, [cuts.ordering(self._best)[index]]))
            index = min(index, len(cuts.ordering(self._best)))

    def _steadily(self, candidate: Json) -> None:
        """Play a candidate several times; if it goes wrong each time, go on with it."""
        if self._stop() or not self._is_new(candidate):
            return
        plays = self._fails([candidate] * STEADY)
        if all(played is not None for played in plays):
            self._take(candidate, max(played for played in plays if played is not None))

    def _take(self, candidate: Json, wrong: Wrong) -> None:
        """Go on with a candidate; what was not begun has no part in it."""
        self._best = {**candidate, "client": candidate["client"][: wrong.begun]}
        self._shows = wrong.shows
        self._tried.add(repr(self._best))

    def _no_conditions(self) -> None:
        """Model steps that are for any call, all at once or one by one."""
        if not self._any([cuts.unconditioned(self._best, cuts.conditions(self._best))]):
            self._each(
                lambda document: len(cuts.conditions(document)),
                lambda document, index: cuts.unconditioned(
                    document, cuts.conditions(document)[index : index + 1]
                ),
            )

    def _any(self, candidates: Sequence[Json | None]) -> bool:
        """Play candidates; the first one that goes wrong is the best from now on."""
        return self._first((0, candidate) for candidate in candidates) is not None

    def _each(self, count: Callable[[Json], int], edit: Edit) -> None:
        """Try an edit at each of so many places of the best document, the last ones before."""
        end = count(self._best)
        while end > 0 and not self._stop():
            document = self._best
            places = range(end - 1, -1, -1)
            hit = self._first((index, edit(document, index)) for index in places)
            if hit is None:
                return
            end = min(hit, count(self._best))

    def _first(self, candidates: Iterator[tuple[int, Json | None]]) -> int | None:
        """Play candidates, some at once, until one goes wrong; its place, None for none."""
        waiting = True
        while waiting and not self._stop():
            some: list[tuple[int, Json]] = []
            while len(some) < self._at_once and (
                waiting := bool(numbered := next(candidates, None))
            ):
                place, candidate = numbered or (0, None)
                if candidate is not None and self._is_new(candidate):
                    some.append((place, candidate))
            plays = self._fails([candidate for _, candidate in some]) if some else []
            for (place, candidate), wrong in zip(some, plays, strict=True):
                if wrong is not None:
                    self._take(candidate, wrong)
                    return place
        return None

    def _is_new(self, candidate: Json) -> bool:
        """Return whether it was not tried, and the loader takes it."""
        key = repr(candidate)
        if key in self._tried or key == repr(self._best):
            return False
        self._tried.add(key)
        return cuts.sound(candidate)
