"""The division of scenarios into shards: by names and durations alone, balanced, stable."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from statistics import mean

from harness.report.shards.partition import shards_of

NAMES = [f"area{number % 23}/scenario-{number}" for number in range(600)]
# Long-tailed, as the durations of the bundled suite.
SECONDS = {name: random.Random(name).lognormvariate(-1.4, 0.9) for name in NAMES}


def moved(seconds: dict[str, float], names: list[str], shards: int) -> int:
    before, after = shards_of(NAMES, SECONDS, shards), shards_of(names, seconds, shards)
    return sum(before[name] != after[name] for name in names if name in before)


def test_division_is_the_same_on_every_machine_and_in_every_order() -> None:
    few = ["turns/plain-turn", "turns/usage", "items/order", "exec/plain@exec"]
    expected = {"turns/plain-turn": 3, "turns/usage": 1, "items/order": 2, "exec/plain@exec": 1}
    assert shards_of(few, {}, 3) == expected
    assert shards_of(NAMES[::-1], SECONDS, 8) == shards_of(NAMES, SECONDS, 8)


def test_shards_last_about_equally_long() -> None:
    for shards in (2, 3, 8, 16):
        loads = defaultdict[int, float](float)
        for name, shard in shards_of(NAMES, SECONDS, shards).items():
            loads[shard] += SECONDS[name]
        assert max(loads.values()) <= 1.25 * sum(loads.values()) / shards
        assert loads.keys() == set(range(1, shards + 1))


def test_shards_are_equally_many_without_durations() -> None:
    counts = Counter(shards_of(NAMES, {}, 8).values())
    assert max(counts.values()) <= 1.15 * len(NAMES) / 8


def test_one_scenario_more_or_less_moves_few_others() -> None:
    fewer = [moved(SECONDS, [*NAMES[:one], *NAMES[one + 1 :]], 8) for one in range(0, 600, 20)]
    assert mean(fewer) <= 0.02 * len(NAMES)
    assert max(fewer) <= 0.1 * len(NAMES)
    more = [moved({**SECONDS, "new/one": took}, [*NAMES, "new/one"], 8) for took in (0.1, 0.9, 4)]
    assert max(more) <= 0.1 * len(NAMES)


def test_slightly_other_durations_move_few_scenarios() -> None:
    for seed in range(5):
        noise = random.Random(seed)
        other = {name: took * noise.uniform(0.9, 1.1) for name, took in SECONDS.items()}
        assert moved(other, NAMES, 8) <= 0.15 * len(NAMES)


def test_one_scenario_longer_than_a_shard_has_few_beside_it() -> None:
    division = shards_of(NAMES, {**SECONDS, NAMES[0]: 500.0}, 8)
    assert [name for name in NAMES if division[name] == division[NAMES[0]]] == [NAMES[0]]


def test_more_shards_than_scenarios_and_none_at_all_are_possible() -> None:
    assert len(set(shards_of(NAMES[:3], {NAMES[0]: 0.0}, 50).values())) == 3
    assert shards_of([], {}, 4) == {}
