"""Known occasions, which a mutation run tries first, before all other scenarios."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import pytest

from harness.faults.base import all_faults
from harness.faults.mutation import Outcome
from harness.scenario.bundled import bundled_ids, bundled_ids_on
from harness.search.mutation import campaign as campaigns
from harness.search.mutation.campaign import (
    Campaign,
    choose_first_scenarios,
    covering_scenarios,
    known_occasions,
)
from harness.search.mutation.plan import Place
from harness.search.mutation.result import Attempt, Score
from harness.trace.surfaces import SESSION, scenario_of, surface_of

TWICE = "turn-ends-twice"


def test_each_fault_has_an_occasion_in_a_scenario_that_there_is() -> None:
    occasions = known_occasions()
    assert set(occasions) == set(all_faults())
    named = {one for ids in occasions.values() for one in ids}
    assert {scenario_of(one) for one in named} <= bundled_ids()
    for one in named:
        surface = surface_of(one)
        assert surface == SESSION or one in bundled_ids_on(surface), one


def test_few_scenarios_serve_all_faults() -> None:
    ids = sorted({one for listed in known_occasions().values() for one in listed})
    assert (
        len(choose_first_scenarios(all_faults(), ids, known_occasions())) < len(bundled_ids()) / 3
    )


def test_the_scenario_that_serves_most_per_second_is_chosen() -> None:
    places = {"f": ["a", "b"], "g": ["b"], "h": ["c", "d"], "without": []}
    assert covering_scenarios(places) == {"b", "c"}
    assert covering_scenarios({"h": ["c", "d"]}, {"c": 9.0, "d": 0.1}) == {"d"}


def test_scenarios_that_this_target_does_not_have_are_left_out() -> None:
    occasions = {"f": ["gone", "there"], "g": ["gone"]}
    assert choose_first_scenarios(["f", "g", "unknown"], ["other", "there"], occasions) == ["there"]


class Played:
    """Workers that play nothing: the fault has a place in each scenario, and is killed in some."""

    def __init__(self, kills_in: str) -> None:
        self.kills_in = kills_in
        self.clean: list[str] = []

    async def ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        if "clean" in job:
            self.clean.append(job["clean"])
            place = Place(job["clean"], Outcome.KILLED, 0.1)
            return {"places": [(TWICE, asdict(place))], "known": [], "before": {}}
        made = [
            Attempt(
                one["scenario"],
                Outcome.KILLED if one["scenario"] == self.kills_in else Outcome.SURVIVED,
                live=True,
            )
            for one in job["places"]
        ]
        return {"attempts": [asdict(one) for one in made]}


def campaign(monkeypatch: pytest.MonkeyPatch, played: Played, **options: Any) -> Campaign:
    @asynccontextmanager
    async def started(_: Any) -> AsyncGenerator[Played]:
        yield played

    monkeypatch.setattr(campaigns, "worker_process", started)
    faults = {TWICE: all_faults()[TWICE]}
    occasions = {TWICE: ["known"]}
    return Campaign(
        faults,
        ["first", "known", "last"],
        {},
        Score("mine", 1),
        lambda _: None,
        workers=1,
        occasions=occasions,
        **options,
    )


async def test_a_fault_killed_at_a_known_place_is_tried_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = Played("known")
    made = campaign(monkeypatch, played)
    await made.run()
    assert played.clean == ["known"]
    (result,) = made.score.results
    assert (result.outcome, result.places) == (Outcome.KILLED, ("known",))


async def test_a_fault_that_survives_there_is_tried_in_all_other_scenarios(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = Played("last")
    made = campaign(monkeypatch, played)
    await made.run()
    assert played.clean == ["known", "first", "last"]
    (result,) = made.score.results
    assert result.outcome is Outcome.KILLED
    assert [one.scenario for one in result.attempts] == ["known", "first", "last"]


async def test_a_sample_looks_at_known_scenarios_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played("last")
    made = campaign(monkeypatch, played, everywhere=False)
    await made.run()
    assert played.clean == ["known"]
    assert [one.outcome for one in made.score.results] == [Outcome.SURVIVED]
