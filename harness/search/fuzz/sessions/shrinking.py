"""Shrinking of a failing document: fewer steps, a shorter model's side, fewer files.

Steps are removed in this order: those after the failure, those long before it, threads, turns and
connections, steps within turns, other steps, half of them at once and then fewer, steps that only
order others, then the model's side. A function returns which of several documents still fail.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from harness.search.fuzz import smaller_params
from harness.search.fuzz.sessions import cuts
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark

# A case of at most this size is not shrunk where it might become flaky.
SMALL_CASE_STEPS = 10
# Plays that must all fail before a candidate is steady.
STEADY_PLAYS = 3
# Returns the failure point of each document, None if it did not fail.
Fails = Callable[[list[Json]], list["FailurePoint | None"]]
Stop = Callable[[], bool]
# An edit of a document at one of its places, by index; None if it changes nothing.
Edit = Callable[[Json, int], Json | None]


class FailurePoint(NamedTuple):
    """Number of steps begun at a failure, and number of the step that shows it, 0 if unknown."""

    begun_steps: int
    shows: int = 0


def shrink_document(
    document: Json,
    fails: Fails,
    stop: Stop = lambda: False,
    *,
    shows: int = 0,
    at_once: int = 1,
    mark: Mark | None = None,
) -> Json:
    """Return the smallest document found that `fails`; `stop` ends the search.

    `fails` gets up to `at_once` documents. `shows` is the number of the step that shows the
    failure, 0 if unknown. With `mark` the params of requests are shrunk too.
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
        """Repeat all passes until none makes the document smaller, and return it."""
        self._try_any([cuts.tidy(self._best)])
        self._shows = shows
        self._drop_after()
        while not self._stop():
            before = repr(self._best)
            self._drop_before()
            self._drop_after()
            self._try_any([cuts.with_one_client(self._best)])
            self._try_each(lambda document: len(cuts.kind_places(document)), cuts.without_kind)
            self._try_each(cuts.step_count, cuts.without_fork)
            for kind in ("start_thread", "connect", "request", "start_turn"):
                self._try_each(cuts.step_count, partial(cuts.without_object, kind))
            self._drop_after()
            self._try_each(cuts.step_count, cuts.with_plain_turn)
            size = max(1, len(cuts.other_places(self._best)) // 2)
            while size and not self._stop():
                self._try_each(partial(cuts.piece_count, size), partial(cuts.without_piece, size))
                size //= 2
            self._drop_order()
            for candidate in cuts.one_after_another(self._best):
                self._try_steadily(candidate)
            self._try_each(cuts.model_step_count, cuts.without_model_step)
            self._try_each(
                lambda document: len(list(cuts.removable_paths(document))), cuts.without_element
            )
            self._drop_conditions()
            if self._mark is not None:
                edit = partial(cuts.with_smaller_params, self._mark)
                self._try_each(
                    lambda document: len(smaller_params.shrinkable_places(document)), edit
                )
            if repr(self._best) == before:
                break
        return self._best

    def _drop_after(self) -> None:
        """Drop the steps after the failure."""
        end = cuts.step_count(self._best)
        if 0 < self._shows < end:
            self._try_any([cuts.without_steps(self._best, range(self._shows, end))])

    def _drop_before(self) -> None:
        """Drop the steps long before: the cause of a failure is mostly close to it."""
        number, hit = 0, True
        while hit and not self._stop() and number != cuts.step_count(self._best):
            number = cuts.step_count(self._best)
            places = [number - number // part for part in (8, 4, 2)] + [number // 4]
            hit = self._try_any([cuts.without_earlier(self._best, index) for index in places])

    def _drop_order(self) -> None:
        """Drop waits and answers of the client, if the document then still fails each time.

        They order the steps; without one the document may become flaky, so a small case keeps them.
        """
        index = len(cuts.ordering_places(self._best))
        while index and cuts.step_count(self._best) > SMALL_CASE_STEPS and not self._stop():
            index -= 1
            self._try_steadily(
                cuts.without_steps(self._best, [cuts.ordering_places(self._best)[index]])
            )
            index = min(index, len(cuts.ordering_places(self._best)))

    def _try_steadily(self, candidate: Json) -> None:
        """Play a candidate several times; if it fails each time, it becomes the best."""
        if self._stop() or not self._is_new(candidate):
            return
        plays = self._fails([candidate] * STEADY_PLAYS)
        if all(played is not None for played in plays):
            self._take(candidate, max(played for played in plays if played is not None))

    def _take(self, candidate: Json, wrong: FailurePoint) -> None:
        """Make a candidate the best, without the steps that were not begun."""
        self._best = {**candidate, "client": candidate["client"][: wrong.begun_steps]}
        self._shows = wrong.shows
        self._tried.add(repr(self._best))

    def _drop_conditions(self) -> None:
        """Drop the conditions of model steps, all at once or one by one."""
        if not self._try_any(
            [cuts.without_conditions(self._best, cuts.condition_places(self._best))]
        ):
            self._try_each(
                lambda document: len(cuts.condition_places(document)),
                lambda document, index: cuts.without_conditions(
                    document, cuts.condition_places(document)[index : index + 1]
                ),
            )

    def _try_any(self, candidates: Sequence[Json | None]) -> bool:
        """Play candidates; the first failing one becomes the best. Return whether there is one."""
        return self._first_failing((0, candidate) for candidate in candidates) is not None

    def _try_each(self, count: Callable[[Json], int], edit: Edit) -> None:
        """Try an edit at each of its places in the best document, from the last to the first."""
        end = count(self._best)
        while end > 0 and not self._stop():
            document = self._best
            places = range(end - 1, -1, -1)
            hit = self._first_failing((index, edit(document, index)) for index in places)
            if hit is None:
                return
            end = min(hit, count(self._best))

    def _first_failing(self, candidates: Iterator[tuple[int, Json | None]]) -> int | None:
        """Play candidates, some at once; make the first failing one the best, return its place."""
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
        """Return whether the candidate was not tried before, and is a valid scenario."""
        key = repr(candidate)
        if key in self._tried or key == repr(self._best):
            return False
        self._tried.add(key)
        return cuts.is_loadable(candidate)
