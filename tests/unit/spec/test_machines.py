"""The state tables: closed, complete against the enumerations of the schemas, and only tables."""

import pytest

from harness.protocol.spec.loading import load_book
from harness.protocol.spec.machines import (
    COUPLINGS,
    INVARIANTS,
    ITEM,
    ITEM_STATUS,
    MACHINES,
    THREAD_STATUS,
    TURN,
)
from spec.examples import WHERE, item


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
    assert TURN.next_state("none", "turn/start") == "inProgress"
    assert TURN.next_state("inProgress", "turn/interrupt") == "interrupted"
    assert TURN.next_state("completed", "turn/interrupt") is None
    assert TURN.terminal == {"completed", "interrupted", "failed"}


def test_the_status_of_an_item_has_the_words_of_its_schema_and_others_have_none():
    schemas = load_book().schemas
    with_status: set[str] = set()
    for item_type in schemas.place("item.json#/$defs/ThreadItem")[0]["properties"]["type"]["enum"]:
        words = statuses_of(item_type)
        if words:
            with_status.add(item_type)
            assert ITEM_STATUS[item_type].states - {"none"} == words
    assert with_status == set(ITEM_STATUS)
    assert len(with_status) == 4


def statuses_of(item_type: str) -> set[str]:
    """The words that the schema takes as the status of a type, empty where it takes any."""
    words = {word for machine in MACHINES.values() for word in machine.states}
    taken = {
        word
        for word in words
        if not any(
            error.path == ("item", "status")
            for error in load_book().validate_event(
                "item/started", {**WHERE, "item": item(item_type, status=word)}
            )
        )
    }
    return set() if taken == words else taken


def test_an_item_is_started_before_it_has_deltas():
    assert ITEM.next_state("none", "delta") is None
    assert ITEM.next_state("none", "item/completed") is None
    assert ITEM.allowed_events("started") == ("delta", "item/completed")
    assert ITEM.allowed_events("completed") == ()


def test_couplings_and_invariants_name_states_and_events_that_exist():
    for (name, state), (other, event) in COUPLINGS.items():
        assert state in MACHINES[name].states
        assert event in {known for _, known in MACHINES[other].transitions}
    for (name, state), (other, states) in INVARIANTS.items():
        assert state in MACHINES[name].states
        assert states <= MACHINES[other].states


def test_the_thread_is_active_exactly_while_a_turn_is_in_progress():
    machine, event = COUPLINGS["turn", "inProgress"]
    assert MACHINES[machine].next_state("idle", event) == "active"
    for ending in TURN.terminal:
        machine, event = COUPLINGS["turn", ending]
        assert MACHINES[machine].next_state("active", event) == "idle"
