"""The state tables: closed, complete against the enumerations of the schemas, and only tables."""

import pytest

from harness.spec.book import load_book
from harness.spec.machines import COUPLINGS, INVARIANTS, ITEM, MACHINES, THREAD_STATUS, TURN


@pytest.mark.parametrize("name", MACHINES)
def test_terminal_states_are_never_left_and_every_state_is_reached(name: str):
    machine = MACHINES[name]
    assert not [state for state, _ in machine.transitions if state in machine.terminal]
    reached, grown = {machine.initial}, True
    while grown:
        more = {after for (state, _), after in machine.transitions.items() if state in reached}
        grown = not more <= reached
        reached |= more
    assert reached == machine.states


def test_states_are_those_of_the_schemas():
    schemas = load_book().schemas
    turn, _ = schemas.place("turn.json#/$defs/TurnStatus")
    assert TURN.states - {"none"} == set(turn["enum"])
    thread, _ = schemas.place("thread.json#/$defs/ThreadStatus")
    assert THREAD_STATUS.states == set(thread["properties"]["type"]["enum"])


def test_a_turn_ends_once_in_one_of_three_ways():
    assert TURN.after("none", "turn/start") == "inProgress"
    assert TURN.after("inProgress", "turn/interrupt") == "interrupted"
    assert TURN.after("completed", "turn/interrupt") is None
    assert TURN.terminal == {"completed", "interrupted", "failed"}


def test_an_item_is_started_before_it_has_deltas():
    assert ITEM.after("none", "delta") is None
    assert ITEM.after("none", "item/completed") is None
    assert ITEM.allowed("started") == ("delta", "item/completed")
    assert ITEM.allowed("completed") == ()


def test_couplings_and_invariants_name_states_and_events_that_exist():
    for (name, state), (other, event) in COUPLINGS.items():
        assert state in MACHINES[name].states
        assert event in {known for _, known in MACHINES[other].transitions}
    for (name, state), (other, states) in INVARIANTS.items():
        assert state in MACHINES[name].states
        assert states <= MACHINES[other].states


def test_the_thread_is_active_exactly_while_a_turn_is_in_progress():
    machine, event = COUPLINGS["turn", "inProgress"]
    assert MACHINES[machine].after("idle", event) == "active"
    for ending in TURN.terminal:
        machine, event = COUPLINGS["turn", ending]
        assert MACHINES[machine].after("active", event) == "idle"
