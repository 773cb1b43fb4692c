"""Growth in a soak: made readings that grow, level off, or are noise; what is a failure."""

from collections.abc import Callable
from random import Random

import pytest

from harness.load.growth import Reading, SoakReport, trends_of
from harness.load.trend import Trend, mann_kendall, theil_sen

MIB = 1024**2
GROWING = Trend(level=10, slope=3, growth=6, p=0.0, grows=True)


def readings_of(memory: Callable[[int, Random], float], seed: int = 0) -> list[Reading]:
    """Return readings of 1,500 turns, with made MiB of memory and 20 threads a reading."""
    random = Random(seed)
    return [
        Reading(10 * at, 20 * at, 20_000 * at, {"memory": MIB * memory(at, random)})
        for at in range(150)
    ]


def test_theil_sen_ignores_an_outlier() -> None:
    assert theil_sen([(0, 1), (1, 3), (2, 5), (3, 1000), (4, 9)]) == 2
    assert theil_sen([(1, 1), (1, 2)]) == 0


def test_mann_kendall_is_that_of_tables() -> None:
    # S is 45 and its variance 125 for ten rising values: z is 44 / sqrt(125).
    assert mann_kendall(range(10)) == pytest.approx(4.15e-5, rel=0.01)
    assert mann_kendall(list(range(10))[::-1]) > 0.999
    assert mann_kendall([4.0] * 10) == 1.0


def test_leak_in_noise_is_found() -> None:
    memory = trends_of(readings_of(lambda at, random: 80 + at / 15 + random.gauss(0, 1)))["memory"]
    assert memory.grows
    assert memory.slope == pytest.approx(1000 / 150, rel=0.2), "MiB per 1,000 turns"


@pytest.mark.parametrize(
    "memory",
    [
        lambda _, random: 80 + random.gauss(0, 8),
        lambda at, random: 80 + min(at, 80) / 5 + random.gauss(0, 0.1),
        lambda at, random: 100 - at / 15 + random.gauss(0, 1),
        lambda at, _: 80 + at / 150,
    ],
    ids=["noise", "levels-off", "shrinks", "one-percent"],
)
def test_sound_memory_is_flat(memory: Callable[[int, Random], float]) -> None:
    grown = [seed for seed in range(50) if trends_of(readings_of(memory, seed))["memory"].grows]
    assert grown == []


def test_list_that_slows_down_the_turns_is_found() -> None:
    # Each turn makes lists slower, so most turns are among the first readings.
    turns = [round(30 * at**0.5) for at in range(150)]
    readings = [Reading(turn, 0, 0, {"list": 0.011 + 0.00023 * turn}) for turn in turns]
    assert trends_of(readings)["list"].grows


def test_disk_is_judged_for_each_thread() -> None:
    readings = readings_of(lambda _at, _random: 80)
    assert not trends_of(readings)["disk of a thread"].grows
    for at, reading in enumerate(readings):
        reading.disk = 400 * at**2
    assert trends_of(readings)["disk of a thread"].grows


def test_too_few_readings_have_no_trend() -> None:
    assert trends_of([]) == {}
    report = SoakReport("s", 1, must_be_flat=False, turns=5)
    assert not report.is_clean
    assert "too short" in report.text_lines()[-1]


@pytest.mark.parametrize("must_be_flat", [False, True])
def test_growth_fails_if_the_profile_promises_flatness(must_be_flat: bool) -> None:
    report = SoakReport("s", 1, must_be_flat, turns=5, trends={"memory": GROWING})
    assert report.is_clean is not must_be_flat
    assert report.text_lines()[-1].endswith("grows with the turns: memory")
    assert report.to_plain()["grown"] == ["memory"]
