"""The statistics of the benchmark and the text of its table."""

import pytest

from tools.bench.budgets import BUDGETS, Budget
from tools.bench.stats import Absent, Figure, format_cell, format_number, median
from tools.bench.table import lines_of

LATENCY = Budget("turn", "a turn", 2.5, "ms")
RATE = Budget("rate", "a rate", 40_000, "turns/s", "higher")
SHOWN = Budget("shown", "only shown", None, "bytes")


def test_median_keeps_the_range_and_scales_all_three() -> None:
    assert median([0.003, 0.001, 0.002], scale=1000) == Figure(2.0, 1.0, 3.0)


def test_median_of_an_even_number_is_between_the_two_in_the_middle() -> None:
    assert median([1.0, 2.0, 4.0, 100.0]).value == 3.0


def test_median_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        median([])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.8349, "1.83"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (99.94, "99.9"),
        (99.96, "100"),
        (46298.4, "46,298"),
        (0.0, "0.00"),
    ],
)
def test_numbers_have_three_digits_or_are_whole(value: float, text: str) -> None:
    assert format_number(value) == text


def test_a_cell_shows_value_range_and_note() -> None:
    assert format_cell(Figure(2.0, 1.0, 3.0, "PSS")) == "2.00 [1.00..3.00] (PSS)"


def test_a_cell_of_one_sample_shows_no_range() -> None:
    assert format_cell(median([2.0])) == "2.00"


def test_an_absent_cell_shows_its_reason() -> None:
    assert format_cell(Absent("not installed")) == "not installed"


@pytest.mark.parametrize(
    ("budget", "value", "verdict"),
    [
        (LATENCY, 2.5, "within"),
        (LATENCY, 2.51, "over"),
        (RATE, 40_000, "within"),
        (RATE, 39_999, "over"),
        (SHOWN, 1, ""),
    ],
)
def test_a_budget_judges_by_its_better_direction(
    budget: Budget, value: float, verdict: str
) -> None:
    assert budget.verdict(Figure(value)) == verdict


def test_missing_figures_are_not_judged() -> None:
    assert LATENCY.verdict(Absent("not measured")) == ""
    assert LATENCY.verdict(Figure(1.0, comparable=False)) == ""


def test_table_has_a_row_per_budget_with_the_verdict_beside_our_figure() -> None:
    cells = {
        "ours": {"turn": Figure(3.0), "rate": Figure(50_000.0)},
        "theirs": {"turn": Absent("not installed")},
    }
    lines = [
        line.split("  ") for line in lines_of([LATENCY, RATE, SHOWN], ["ours", "theirs"], cells)
    ]
    words = [[word.strip() for word in line if word.strip()] for line in lines]
    assert words[0] == ["budget", "ours", "theirs"]
    assert words[2:] == [
        ["a turn", "<= 2.5 ms", "3.00", "over", "not installed"],
        ["a rate", ">= 40,000 turns/s", "50,000", "within", "-"],
        ["only shown", "bytes", "not measured", "-"],
    ]


def test_columns_of_the_table_are_aligned() -> None:
    cells = {"ours": {"turn": Figure(3.0)}, "theirs": {"turn": Figure(12345.0)}}
    lines = lines_of([LATENCY, RATE], ["ours", "theirs"], cells)
    assert lines[0].index("theirs") == lines[2].index("12,345") == lines[3].index("-", 25)


def test_every_budget_has_a_key_of_its_own() -> None:
    assert len({budget.key for budget in BUDGETS}) == len(BUDGETS)
