"""Choices that differ between two runs, at the points that the text leaves open."""

from collections import defaultdict
from collections.abc import Iterator

from harness.report.compare.values import Change, Kind, Run, Where
from harness.report.results.recorded import ChoiceResult, Shown, unpack

# Where the two disagree in so many scenarios that both played, it is no chance.
MIN_DISAGREEING_SCENARIOS = 3
# What the comparison of messages says better.
_OF_MESSAGES = (
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
# What the moment may decide at which something arrives.
_BY_THE_MOMENT = (
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

# By value: the ids of the scenarios in which it was seen.
Seen = dict[str, set[str]]


class _Side:
    """The choices of one run in the scenarios that both played."""

    def __init__(self, run: Run, common: set[str]) -> None:
        self.run = run
        self.scenarios = run.report.scenarios
        self.seen: dict[tuple[str, str], Seen] = defaultdict(dict)
        self.first: dict[tuple[str, str, str], Where] = {}
        for point, results in run.report.choices.items():
            for result in results:
                self._add(point, result, common)

    def _add(self, point: str, result: ChoiceResult, common: set[str]) -> None:
        shown = unpack(result.shown)
        ids = {self.scenarios[place].id for place in shown.scenarios} & common
        if ids:
            self.seen[point, result.about][result.value] = ids
            self.first[point, result.about, result.value] = self._where(shown)

    def _where(self, shown: Shown) -> Where:
        return Where(self.scenarios[shown.first].trace, shown.frame)


def choice_changes(before: Run, after: Run) -> Iterator[tuple[Change, bool]]:
    """The points at which the two chose differently, each with whether by chance.

    A point that only one of them came to, in a situation, is left out: it shows no difference.
    """
    common = before.played & after.played
    first, second = _Side(before, common), _Side(after, common)
    for key in sorted(first.seen.keys() & second.seen.keys()):
        point, about = key
        was, now = first.seen[key], second.seen[key]
        if was.keys() == now.keys() or point in _OF_MESSAGES:
            continue
        gone, new = was.keys() - now.keys(), now.keys() - was.keys()
        left = next(iter(sorted(gone or was)))
        right = next(iter(sorted(new or now)))
        change = Change(
            Kind.CHOICE,
            f"{point} ({about})" if about else point,
            _words(was),
            _words(now),
            shown_before=first.first[point, about, left],
            shown_after=second.first[point, about, right],
        )
        yield change, _by_chance(point, was, now)


def one_sided(before: Run, after: Run) -> tuple[int, int]:
    """At how many points, in how many situations, only one of them was seen."""
    common = before.played & after.played
    first, second = _Side(before, common).seen.keys(), _Side(after, common).seen.keys()
    return len(first - second), len(second - first)


def _words(seen: Seen) -> str:
    """The values, the most frequent first."""
    return "; ".join(sorted(seen, key=lambda value: (-len(seen[value]), value)))


def _by_chance(point: str, was: Seen, now: Seen) -> bool:
    apart = was.keys().isdisjoint(now)
    if apart and point not in _BY_THE_MOMENT:
        return False
    return _disagreeing(was, now) < MIN_DISAGREEING_SCENARIOS


def _disagreeing(was: Seen, now: Seen) -> int:
    """In how many scenarios they share no value."""
    of_first, of_second = _by_scenario(was), _by_scenario(now)
    both = of_first.keys() & of_second.keys()
    return sum(of_first[one].isdisjoint(of_second[one]) for one in both)


def _by_scenario(seen: Seen) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for value, scenarios in seen.items():
        for one in scenarios:
            found[one].add(value)
    return found
