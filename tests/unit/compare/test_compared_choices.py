"""Differences between the choices of two runs, and those that may be chance."""

from __future__ import annotations

from harness.judge.ledger.record import Record
from harness.judge.ledger.trace_observer import Sighting
from harness.report.compare.choices import MIN_DISAGREEING_SCENARIOS
from harness.report.compare.comparison import compare
from harness.report.compare.text import text_lines
from harness.report.compare.values import Comparison, Kind, TracePlace
from harness.report.results.outcome import ScenarioOutcome
from tests.unit.compare.recorded_runs import played, run

POINT, CHANCE = "turn-start.while-active", "rpc.response-order"


def chose(name: str, *values: str, point: str = POINT, about: str = "") -> ScenarioOutcome:
    seen = [Sighting(point, about, value, 1, 7) for value in values]
    return played(name, record=Record(choices=seen))


def compared(first: list[ScenarioOutcome], second: list[ScenarioOutcome]) -> Comparison:
    return compare(run("old", *first), run("new", *second))


def test_the_same_choices_differ_in_nothing() -> None:
    found = compared([chose("a", "yes", "no")], [chose("a", "no", "yes")])
    assert (found.changes, found.unsteady) == ([], [])


def test_another_choice_is_told_with_both_traces_and_breaks_nobody() -> None:
    found = compared([chose("a", "refused")], [chose("a", "granted")])
    [change] = found.changes
    assert (change.kind, change.before, change.after) == (Kind.CHOICE, "refused", "granted")
    assert change.shown_before == change.shown_after == TracePlace("/a.jsonl", 7)
    assert not found.worse


def test_situations_are_compared_apart() -> None:
    first = [chose("a", "yes", about="one"), chose("b", "no", about="other")]
    second = [chose("a", "no", about="one"), chose("b", "no", about="other")]
    [change] = compared(first, second).changes
    assert change.subject == f"{POINT} (one)"


def test_a_point_that_only_one_of_them_came_to_is_no_difference() -> None:
    found = compared([chose("a", "yes")], [chose("a", "yes"), chose("b", "no", about="new")])
    assert (found.changes, found.unsteady) == ([], [])


def test_scenarios_of_one_run_alone_are_left_out() -> None:
    found = compared([chose("a", "yes"), chose("b", "no")], [chose("a", "yes")])
    assert found.changes == []


def test_a_value_that_came_once_beside_the_usual_one_is_unsteady() -> None:
    usual = [chose(name, "first") for name in "abcdef"]
    once = [chose("a", "later"), *usual[1:]]
    for first, second in ((usual, once), (once, usual)):
        found = compared(first, second)
        assert (found.changes, len(found.unsteady)) == ([], 1)


def test_a_value_that_came_often_enough_is_no_chance() -> None:
    names = "abcdef"
    usual = [chose(name, "first") for name in names]
    often = [
        chose(name, "later" if place < MIN_DISAGREEING_SCENARIOS else "first")
        for place, name in enumerate(names)
    ]
    found = compared(usual, often)
    assert (len(found.changes), found.unsteady) == (1, [])


def test_where_the_moment_decides_one_scenario_is_too_little() -> None:
    found = compared([chose("a", "first", point=CHANCE)], [chose("a", "later", point=CHANCE)])
    assert (found.changes, len(found.unsteady)) == ([], 1)


def test_each_run_is_named_with_the_programs_that_it_played() -> None:
    server, programs = run("old", chose("a", "yes")), run("new", chose("a", "yes"))
    programs.report.command, programs.report.agent, programs.report.sdk = "", "my-agent", "driver"
    assert list(text_lines(compare(server, programs)))[:2] == [
        f"before: old ({server.report.command})",
        "after:  new (my-agent; driver)",
    ]
