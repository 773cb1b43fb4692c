"""Capabilities and tags of scenarios, read from their files, by which a page filters."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.report.results.report import Report
from harness.scenario.loader import load_all
from harness.scenario.race_id import RaceId
from harness.trace.surfaces import SESSION, surface_of


@dataclass(frozen=True, slots=True)
class ScenarioFacts:
    """The capabilities that a scenario needs, and its tags."""

    needs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def read_facts(report: Report) -> Mapping[str, ScenarioFacts]:
    """Return the facts of a report's scenarios and races by id, from the files that still exist."""
    plays = {one.id: one.path for one in (*report.scenarios, *report.races)}
    files = {Path(path) for path in plays.values() if path and Path(path).is_file()}
    by_id: dict[str, ScenarioFacts] = {}
    for loaded in load_all(sorted(files), clientless=True):
        if not isinstance(loaded, Exception):
            scenario = loaded.scenario
            by_id[loaded.id] = ScenarioFacts(tuple(scenario.needs), tuple(scenario.tags))
    facts = {name: by_id.get(RaceId.parse(name).scenario, ScenarioFacts()) for name in plays}
    return {
        name: ScenarioFacts(one.needs, (*one.tags, *_surface_tag(name)))
        for name, one in facts.items()
    }


def _surface_tag(name: str) -> tuple[str, ...]:
    surface = surface_of(name)
    return () if surface == SESSION else (surface,)
