"""Scenarios that are known to give each fault a place, so that few need be played.

This only says where to look first: the outcome of a fault is always determined by playing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml

# The scenarios of a fault by its id, the best one first.
Occasions = Mapping[str, Sequence[str]]


@cache
def known_occasions() -> Occasions:
    """Return the table as it ships."""
    text = Path(__file__).with_name("occasions.yaml").read_text("utf-8")
    table: dict[str, list[str]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return table


def choose_first_scenarios(
    faults: Iterable[str], scenarios: Sequence[str], occasions: Occasions
) -> list[str]:
    """Return few of the scenarios, in order, with a place for each fault of the table."""
    available = set(scenarios)
    places = {
        fault: [scenario for scenario in occasions.get(fault, ()) if scenario in available]
        for fault in faults
    }
    chosen = covering_scenarios(places)
    return [scenario for scenario in scenarios if scenario in chosen]


def covering_scenarios(
    places: Mapping[str, Collection[str]], seconds: Mapping[str, float] | None = None
) -> set[str]:
    """Choose scenarios that cover each fault, preferring those that cover most per second.

    `seconds` is the duration of each scenario; without it all take the same.
    """
    costs = seconds or {}
    uncovered = {fault: set(ids) for fault, ids in places.items() if ids}
    chosen: set[str] = set()
    while uncovered:
        served: dict[str, int] = {}
        for ids in uncovered.values():
            for scenario in ids:
                served[scenario] = served.get(scenario, 0) + 1
        best = min(
            served,
            key=lambda scenario: (-served[scenario] / (0.1 + costs.get(scenario, 0.1)), scenario),
        )
        chosen.add(best)
        uncovered = {fault: ids for fault, ids in uncovered.items() if best not in ids}
    return chosen
