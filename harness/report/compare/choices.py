"""Choices that differ between two runs, at the points that the text leaves open."""

from collections import defaultdict
from collections.abc import Iterator

from harness.report.compare.values import Change, Kind, Run, TracePlace
from harness.report.results.sightings import ChoiceResult, Sightings, unpack

# Scenarios played by both in which the runs must disagree, to rule out chance.
MIN_DISAGREEING_SCENARIOS = 3
# Points that the comparison of messages reports better.
_MESSAGE_POINTS = (
    "approval.optional-params",
    "event.compaction-names",
    "event.payloads",
    "item.command-action-fields",
    "item.tool-result-shapes",
    "item.web-search-payloads",
    "mcp-list.json-fields",
    "rpc.extra-members",
    "rpc.handshake",
    "rpc.unlisted-methods",
    "skill.interface-optional",
    "thread-status.flag-values",
    "turn-error.info-values",
    "turn-error.optional-fields",
)
# Points that may depend on timing.
_TIMING_DEPENDENT = (
    "approval.interrupted",
    "errors.retry-limits",
    "event.token-usage-often",
    "item.completed-when-cut",
    "item.output-order",
    "mcp-config.concurrent",
    "rpc.concurrent-requests",
    "rpc.response-order",
    "thread-status.transitions",
    "turn-interrupt.twice",
    "turn-steer.cut-turn",
    "turn-steer.shown",
    "turn-steer.stored",
    "turn-steer.when-applied",
    "turn.events-between",
    "turn.final-status-order",
)

# Value -> ids of the scenarios in which it was seen.
ScenariosByValue = dict[str, set[str]]


class _Side:
    """The choices of one run in the scenarios that both played."""

    def __init__(self, run: Run, common: set[str]) -> None:
        self.run = run
        self.scenarios = run.report.scenarios
        self.scenarios_by_value: dict[tuple[str, str], ScenariosByValue] = defaultdict(dict)
        self.first_places: dict[tuple[str, str, str], TracePlace] = {}
        for point, results in run.report.choices.items():
            for result in results:
                self._add(point, result, common)

    def _add(self, point: str, result: ChoiceResult, common: set[str]) -> None:
        sightings = unpack(result.shown)
        ids = {self.scenarios[place].id for place in sightings.scenarios} & common
        if ids:
            self.scenarios_by_value[point, result.about][result.value] = ids
            self.first_places[point, result.about, result.value] = self._place_of(sightings)

    def _place_of(self, sightings: Sightings) -> TracePlace:
        return TracePlace(self.scenarios[sightings.first].trace, sightings.frame)


def choice_changes(before: Run, after: Run) -> Iterator[tuple[Change, bool]]:
    """Yield the open points at which the servers chose differently, each with "may be chance".

    A point that only one run reached in a situation is left out: it shows no difference.
    """
    common = before.played_scenarios & after.played_scenarios
    first, second = _Side(before, common), _Side(after, common)
    for key in sorted(first.scenarios_by_value.keys() & second.scenarios_by_value.keys()):
        point, situation = key
        was, now = first.scenarios_by_value[key], second.scenarios_by_value[key]
        if was.keys() == now.keys() or point in _MESSAGE_POINTS:
            continue
        gone, new = was.keys() - now.keys(), now.keys() - was.keys()
        old_value = next(iter(sorted(gone or was)))
        new_value = next(iter(sorted(new or now)))
        change = Change(
            Kind.CHOICE,
            f"{point} ({situation})" if situation else point,
            _words(was),
            _words(now),
            shown_before=first.first_places[point, situation, old_value],
            shown_after=second.first_places[point, situation, new_value],
        )
        yield change, _by_chance(point, was, now)


def one_sided(before: Run, after: Run) -> tuple[int, int]:
    """Return how many points, each in a situation, only `before` and only `after` reached."""
    common = before.played_scenarios & after.played_scenarios
    first, second = (
        _Side(before, common).scenarios_by_value.keys(),
        _Side(after, common).scenarios_by_value.keys(),
    )
    return len(first - second), len(second - first)


def _words(scenarios_by_value: ScenariosByValue) -> str:
    """Return the values, the most frequent first."""
    return "; ".join(
        sorted(scenarios_by_value, key=lambda value: (-len(scenarios_by_value[value]), value))
    )


def _by_chance(point: str, was: ScenariosByValue, now: ScenariosByValue) -> bool:
    apart = was.keys().isdisjoint(now)
    if apart and point not in _TIMING_DEPENDENT:
        return False
    return _count_disagreeing(was, now) < MIN_DISAGREEING_SCENARIOS


def _count_disagreeing(was: ScenariosByValue, now: ScenariosByValue) -> int:
    """Count the scenarios in which the runs share no value."""
    of_first, of_second = _values_by_scenario(was), _values_by_scenario(now)
    both = of_first.keys() & of_second.keys()
    return sum(of_first[scenario].isdisjoint(of_second[scenario]) for scenario in both)


def _values_by_scenario(scenarios_by_value: ScenariosByValue) -> dict[str, set[str]]:
    values: dict[str, set[str]] = defaultdict(set)
    for value, scenarios in scenarios_by_value.items():
        for scenario in scenarios:
            values[scenario].add(value)
    return values
