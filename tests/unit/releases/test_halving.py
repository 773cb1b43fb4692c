"""Halving on made-up releases: flaky, broken, skipped, alike, more than one change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from harness.search.releases.halving import Answer, Halving, Step, halve

OLD, NEW, OTHER, BROKEN = "old", "new", "other", ""


def halved(*states: str, flaky: dict[str, Sequence[str]] | None = None) -> Halving:
    """Halve releases named 0, 1, …, whose answers are these; of a flaky one, play by play."""
    versions = [str(number) for number in range(len(states))]

    def ask(version: str, number: int) -> Answer:
        if plays := (flaky or {}).get(version):
            return Answer(plays[number - 1], is_flaky=True)
        state = states[int(version)]
        return Answer(state) if state else Answer(problem="it does not start")

    return halve(versions, ask, lambda step: None)


def asked(result: Halving) -> list[str]:
    return [step.version for step in result.steps]


@pytest.mark.parametrize("first_new", range(1, 19))
def test_every_change_among_nineteen_releases_costs_at_most_seven_plays(first_new: int) -> None:
    result = halved(*[OLD] * first_new, *[NEW] * (19 - first_new))
    assert (result.last_old, result.first_new) == (str(first_new - 1), str(first_new))
    assert asked(result)[:2] == ["0", "18"]
    assert result.play_count <= 7
    assert not result.skipped_between


def test_a_hundred_and_twenty_nine_releases_cost_at_most_nine_plays() -> None:
    counts = {halved(*[OLD] * at, *[NEW] * (129 - at)).play_count for at in range(1, 129)}
    assert max(counts) == 9


def test_ends_that_are_alike_end_the_search() -> None:
    result = halved(OLD, OLD, NEW, OLD)
    assert asked(result) == ["0", "3"]
    assert not result.is_found


def test_a_broken_end_gives_way_to_its_neighbour() -> None:
    result = halved(BROKEN, OLD, NEW, BROKEN, BROKEN)
    assert (result.last_old, result.first_new) == ("1", "2")
    assert asked(result) == ["0", "1", "4", "3", "2"]


@pytest.mark.parametrize("unusable", [BROKEN, OTHER])
def test_a_release_that_cannot_tell_is_skipped_and_makes_a_range(unusable: str) -> None:
    result = halved(OLD, OLD, OLD, unusable, NEW, NEW, NEW)
    assert (result.last_old, result.first_new) == ("2", "4")
    assert result.skipped_between == ["3"]
    reasons = {BROKEN: "it does not start", OTHER: "other: neither old nor new"}
    assert [step.skipped for step in result.steps if step.version == "3"] == [reasons[unusable]]


def test_a_skipped_release_away_from_the_change_makes_no_range() -> None:
    result = halved(OLD, OLD, OLD, BROKEN, OLD, NEW, NEW)
    assert (result.last_old, result.first_new) == ("4", "5")
    assert not result.skipped_between
    assert [step.version for step in result.steps if step.skipped] == ["3"]


def test_all_between_the_ends_can_be_skipped() -> None:
    result = halved(OLD, BROKEN, OTHER, NEW)
    assert result.skipped_between == ["1", "2"]


@pytest.mark.parametrize("states", [(BROKEN, BROKEN), (BROKEN, OLD), (OLD, BROKEN)])
def test_fewer_than_two_usable_releases_find_nothing(states: tuple[str, ...]) -> None:
    assert not halved(*states).is_found


@pytest.mark.parametrize(
    ("plays", "taken"),
    [
        ((NEW, OLD, OLD), 3),
        ((OLD, NEW, OLD), 3),
        ((OLD, OLD, NEW), 2),  # Two of three are a majority.
    ],
)
def test_a_flaky_release_is_played_until_a_majority_agrees(
    plays: tuple[str, ...], taken: int
) -> None:
    result = halved(OLD, NEW, NEW, flaky={"1": plays})
    assert (result.last_old, result.first_new) == ("1", "2")
    step = next(step for step in result.steps if step.version == "1")
    assert step.plays == plays[:taken]
    assert result.play_count == 2 + taken


def test_a_flaky_release_without_a_majority_is_skipped() -> None:
    result = halved(OLD, NEW, NEW, flaky={"1": (OLD, NEW, OTHER)})
    assert (result.last_old, result.first_new, result.skipped_between) == ("0", "2", ["1"])


def test_of_several_changes_a_true_one_is_found() -> None:
    states = (OLD, NEW, NEW, OLD, OLD, NEW, OLD, NEW)
    result = halved(*states)
    changes = [
        (str(number), str(number + 1))
        for number, pair in enumerate(pairwise(states))
        if pair == (OLD, NEW)
    ]
    assert (result.last_old, result.first_new) in changes


def test_each_step_is_told_as_it_is_taken() -> None:
    told: list[Step] = []
    ask: Callable[[str, int], Answer] = lambda version, _: Answer(OLD if version < "b" else NEW)  # noqa: E731
    result = halve(["a", "b", "c"], ask, told.append)
    assert told == result.steps
