"""Verdicts depend on the tables of the state machines: a changed table changes them."""

import dataclasses

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.rules.items import lifecycle as items
from harness.judge.rules.shared import state_tracking
from harness.judge.rules.threads import status_changes
from harness.judge.rules.turns import announcements as turns
from harness.judge.verdict import Verdict
from harness.protocol.spec import machines
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.machines import (
    INVARIANTS,
    ITEM,
    ITEM_STATUS,
    THREAD_STATUS,
    TURN,
    Machine,
)
from harness.trace.views import conversation_of
from tests.rules.case import opened, running
from tests.rules.traces import TURN as FIRST
from tests.rules.traces import Talk, agent_message, command


def broken(rule: str, talk: Talk) -> bool:
    rows = judge(load_book(), talk.trace(), rules=[all_rules()[rule]])
    assert rows, "judged"
    return any(row.verdict is not Verdict.PASS for row in rows)


def without(machine: Machine, *row: str) -> Machine:
    """The machine without one of its rows."""
    kept = {key: after for key, after in machine.transitions.items() if key != row}
    assert len(kept) == len(machine.transitions) - 1
    return dataclasses.replace(machine, transitions=kept)


def having(machine: Machine, state: str, event: str, after: str) -> Machine:
    """The machine with a row more."""
    return dataclasses.replace(machine, transitions={**machine.transitions, (state, event): after})


def test_a_delta_is_legal_by_the_row_of_the_lifecycle(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = running().message("m-1", "a")
    assert not broken("item.started-before-delta", talk)
    monkeypatch.setattr(items, "ITEM", without(ITEM, "started", "delta"))
    assert broken("item.started-before-delta", talk)


def test_a_delta_after_the_end_is_illegal_for_want_of_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = running().message("m-1", "a").delta("m-1", "b")
    assert broken("item.completed-last", talk)
    monkeypatch.setattr(items, "ITEM", having(ITEM, "completed", "delta", "completed"))
    assert not broken("item.completed-last", talk)


def test_a_turn_ends_once_since_no_row_leaves_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = running().end_turn().turn_completed()
    assert broken("turn.completed-once", talk)
    monkeypatch.setattr(turns, "TURN", having(TURN, "completed", "again", "completed"))
    assert not broken("turn.completed-once", talk)


def test_a_turn_begins_once_since_no_row_begins_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = running().turn_started()
    assert broken("turn.started-once", talk)
    monkeypatch.setattr(turns, "TURN", having(TURN, "inProgress", "turn/start", "inProgress"))
    assert not broken("turn.started-once", talk)


def test_a_status_moves_by_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = opened().status("notLoaded").status("active")
    assert broken("status.known-move", talk)
    more = having(THREAD_STATUS, "notLoaded", "turn begins", "active")
    monkeypatch.setattr(status_changes, "THREAD_STATUS", more)
    assert not broken("status.known-move", talk)


def test_a_status_agrees_with_the_turns_at_all_times(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = running().started(agent_message("m-1", "")).read_status("idle").delta("m-1", "x")
    assert broken("status.read-matches-turns", talk)
    rest = {key: row for key, row in INVARIANTS.items() if key != ("thread-status", "idle")}
    monkeypatch.setattr(state_tracking, "INVARIANTS", rest)
    rows = judge(load_book(), talk.trace(), rules=[all_rules()["status.read-matches-turns"]])
    assert rows == []


def test_the_status_of_an_item_is_judged_by_the_table_of_its_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = running().started(command("c-1", "declined"))
    assert broken("item.begins-in-progress", talk)
    asked = having(ITEM_STATUS["commandExecution"], "none", "work begins", "declined")
    monkeypatch.setitem(machines.ITEM_STATUS, "commandExecution", asked)  # type: ignore[arg-type]
    assert not broken("item.begins-in-progress", talk)


def state_before_the_last(talk: Talk) -> str:
    turn = conversation_of(talk.trace()).turns[FIRST]
    return state_tracking.turn_state(turn, before=talk.last)


def test_the_state_of_a_turn_before_each_of_its_messages() -> None:
    begun = opened().ask_turn().reply_turn().turn_started()
    assert state_before_the_last(begun) == "none"
    assert state_before_the_last(begun.status("active")) == "inProgress"
    for status in ("completed", "interrupted", "failed"):
        ended = running().end_turn(status=status).turn_completed()
        assert state_before_the_last(ended) == status
    odd = running().turn_completed(status="inProgress").turn_completed()
    assert state_before_the_last(odd) == "completed"


def test_couplings_say_what_becomes_of_the_thread() -> None:
    assert state_tracking.status_after("inProgress", "idle") == "active"
    assert state_tracking.status_after("failed", "active") == "idle"
    assert state_tracking.status_after("completed", "notLoaded") == "notLoaded"
    assert (state_tracking.needs_turn("active"), state_tracking.needs_turn("idle")) == (True, False)
    assert state_tracking.needs_turn("systemError") is None
