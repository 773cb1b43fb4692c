"""Repeated failures: unconfirmed, long and flaky ones; without a server."""

from __future__ import annotations

import math
import time
from collections.abc import Set
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.judge.verdict import Level
from harness.protocol.spec.loading import load_book
from harness.search.fuzz.sessions import search
from harness.search.fuzz.sessions.confirm import MAX_SHRINK_SECONDS, MIN_SHRINK_SECONDS, Small
from harness.search.fuzz.sessions.play import Played, Problem
from harness.search.fuzz.sessions.search import FoundFailure, Searcher
from harness.trace.trace import Trace

Json = dict[str, Any]
LATE, TWICE = "turn.completes", "turn.completed-once"


def session(steps: int) -> Json:
    return {"title": "x", "client": [{"start_thread": {"as": f"t{at}"}} for at in range(steps)]}


def play(steps: int, *causes: str) -> Played:
    problems = [Problem(cause, f"{cause}: so", level=Level.MUST) for cause in causes]
    told = {"document": session(steps), "problems": problems, "kept_rules": {}}
    run, outcome = SimpleNamespace(trace=None), SimpleNamespace(rows=[])
    return cast("Played", SimpleNamespace(run=run, outcome=outcome, **told))


class Search(Searcher):
    """A search in which making small gives the results that it was given, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *results: Small | None) -> None:
        self.told: list[FoundFailure] = []
        self.followed = 0
        self.seconds: list[float] = []
        config = SimpleNamespace(entries=[], book=load_book())
        nobody = cast("Any", None)
        super().__init__(cast("Any", config), nobody, nobody, nobody, 1, self.told.append)
        left = list(results)

        def made_small(_: object, __: Json, ___: object, seconds: float, *____: object) -> Any:
            self.followed += 1
            self.seconds.append(seconds)
            return left.pop(0)

        monkeypatch.setattr(search, "make_small", made_small)

    def _count(self, trace: Trace, rules: Set[str]) -> None:
        pass

    def _learn(self, played: Played) -> None:
        pass

    def meet(self, *causes: str) -> None:
        """A play in which these go wrong."""
        self._judge(play(30, *causes))

    def end(self, seconds_ago: float = math.inf) -> None:
        """The time is over."""
        self._end = time.monotonic() - seconds_ago

    def polish(self, seconds_ago: float = 0) -> None:
        """Run the work that follows the end of the time."""
        self.end(seconds_ago)
        self._polish()

    @property
    def cases(self) -> list[tuple[str, int, bool]]:
        """The cause, length and flakiness of what was found."""
        found = self.campaign.failures
        return [(one.cause, len(one.document["client"]), one.flaky) for one in found]


def small(steps: int, cause: str = LATE, *, flaky: bool = False) -> Small:
    played = play(steps, cause)
    return Small(played.document, played, played.problems[0], flaky)


def test_an_unconfirmed_failure_is_followed_up_when_it_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Search(monkeypatch, None, None, small(5))
    for _ in range(4):
        one.meet(LATE)
    assert one.cases == [(LATE, 5, False)]
    assert one.followed == 3
    assert one.campaign.unsteady == []


def test_but_not_for_ever_nor_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Search(monkeypatch, *[None] * 9)
    for _ in range(9):
        one.meet(LATE)
    assert one.followed == 4
    late = Search(monkeypatch, *[None] * 9)
    late.meet(LATE)
    late.end()
    late.meet(LATE)
    assert late.followed == 1
    assert late.campaign.unsteady == [f"{LATE}: so"]
    late.meet(TWICE)
    assert late.followed == 2


def test_a_failure_found_at_the_end_has_full_time_and_later_ones_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for ago, least, most in (
        (-60, MAX_SHRINK_SECONDS, MAX_SHRINK_SECONDS),
        (0, 25, MAX_SHRINK_SECONDS),
        (600, MIN_SHRINK_SECONDS, MIN_SHRINK_SECONDS),
    ):
        one = Search(monkeypatch, small(5))
        one.end(ago)
        one.meet(LATE)
        assert least <= one.seconds[0] <= most


def test_a_long_or_flaky_case_is_replaced_by_a_better_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for first in (small(14), small(6, flaky=True)):
        one = Search(monkeypatch, first, small(8))
        one.meet(LATE)
        one.meet(LATE)
        one.meet(LATE)
        assert one.cases == [(LATE, 8, False)]
        assert one.followed == 2
        assert [found.instead_of for found in one.told] == [None, one.told[0]]


def test_long_and_flaky_cases_are_made_smaller_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Search(monkeypatch, small(14), small(7, TWICE, flaky=True), small(9), None)
    one.meet(LATE)
    one.meet(TWICE)
    one.polish()
    assert sorted(one.cases) == [(TWICE, 7, True), (LATE, 9, False)]
    assert one.followed == 4
    assert one.told[-1].instead_of is one.told[0]


def test_but_not_good_ones_nor_long_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for steps, ago in ((9, 0), (14, 2 * MAX_SHRINK_SECONDS)):
        one = Search(monkeypatch, small(steps))
        one.meet(LATE)
        one.polish(ago)
        assert one.followed == 1


def test_it_stays_where_the_other_one_is_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in (None, small(15), small(3, flaky=True)):
        one = Search(monkeypatch, small(14), other)
        one.meet(LATE)
        one.meet(LATE)
        assert one.cases == [(LATE, 14, False)]
        assert len(one.told) == 1


def test_a_case_that_is_good_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Search(monkeypatch, small(10), small(2))
    one.meet(LATE)
    one.meet(LATE)
    assert one.cases == [(LATE, 10, False)]


def test_a_better_case_may_come_by_either_name_of_the_defect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Search(monkeypatch, small(14, TWICE), small(8, TWICE))
    one.meet(LATE)
    one.meet(LATE)
    assert one.cases == [(TWICE, 8, False)]


def test_another_failure_does_not_take_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Search(monkeypatch, small(14), small(8, TWICE))
    one.meet(LATE)
    one.meet(TWICE)
    assert one.cases == [(LATE, 14, False), (TWICE, 8, False)]
