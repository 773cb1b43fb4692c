"""Plan of a mutation run: the places of faults in clean traces, and the scenarios to try."""

from pathlib import Path

import pytest

from harness.faults.base import all_faults
from harness.faults.mutation import Outcome
from harness.protocol.spec.loading import load_book
from harness.search.mutation.plan import (
    MAX_PLAYS,
    Place,
    Plan,
    changes_client,
    places_on,
    put_into_traces,
)
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Trace

GOOD = Path("fixtures/traces/good")
FAULTS = all_faults()
TWICE = FAULTS["turn-ends-twice"]


def good(name: str) -> Trace:
    return load(GOOD / f"{name}.jsonl", classify_of=classify_of)


def place(outcome: Outcome, seconds: float = 1.0, name: str = "s") -> Place:
    return Place(name, outcome, seconds)


def test_a_clean_trace_says_where_a_fault_can_act_and_that_its_rule_sees_it() -> None:
    found = places_on(load_book(), good("plain-turn"), [TWICE], (), 0.5)
    assert found == [("turn-ends-twice", Place("plain-turn", Outcome.KILLED, 0.5))]


def test_a_fault_without_a_place_is_in_no_plan() -> None:
    fault = FAULTS["fork-not-announced"]
    assert places_on(load_book(), good("plain-turn"), [fault], (), 0.5) == []


def test_where_the_target_is_known_to_break_the_rule_a_fault_is_masked() -> None:
    ((_, found),) = places_on(load_book(), good("plain-turn"), [TWICE], (TWICE.rule,), 0.5)
    assert found.outcome is Outcome.MASKED


def test_the_quickest_scenario_in_which_the_rule_sees_it_is_tried_first() -> None:
    plan = Plan({TWICE.id: TWICE})
    slow, quick = place(Outcome.KILLED, 2.0), place(Outcome.KILLED, 0.1)
    missed = place(Outcome.SURVIVED, 0.01)
    plan.add((TWICE.id, one) for one in (slow, missed, quick))
    assert plan.best(TWICE) == [quick, slow]


def test_where_the_rule_sees_it_nowhere_those_are_tried_in_which_it_can_act() -> None:
    plan = Plan({TWICE.id: TWICE})
    missed = place(Outcome.SURVIVED)
    plan.add([(TWICE.id, missed)])
    assert plan.best(TWICE) == [missed]


def test_scenarios_are_looked_for_until_there_are_enough() -> None:
    plan = Plan({TWICE.id: TWICE})
    for _ in range(MAX_PLAYS):
        assert plan.open_on("session") == [TWICE]
        plan.add([(TWICE.id, place(Outcome.KILLED))])
    assert plan.open_on("session") == []


def test_a_fault_is_asked_only_of_traces_of_its_surface() -> None:
    assert Plan({TWICE.id: TWICE}).open_on("exec") == []


@pytest.mark.parametrize("fault", ["exec-usage-in-words", "sdk-input-lost", "mcp-remove-is-silent"])
def test_events_of_a_program_are_changed_in_its_trace(fault: str) -> None:
    assert put_into_traces(FAULTS[fault])


def test_a_turn_that_ends_twice_is_played_live() -> None:
    assert not put_into_traces(TWICE)


def test_a_fault_of_the_client_is_no_servers() -> None:
    fault = FAULTS["asked-under-an-override-of-never"]
    assert changes_client(fault, good("on-request"))
    assert not changes_client(TWICE, good("plain-turn"))


def test_a_place_is_read_as_another_process_told_it() -> None:
    told = {"scenario": "a/b", "outcome": "KILLED", "seconds": 0.5, "by_client": True}
    assert Place.read(told) == Place("a/b", Outcome.KILLED, 0.5, by_client=True)
