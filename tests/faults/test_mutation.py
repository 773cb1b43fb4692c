"""Outcomes of a fault: killed, survived, masked, not applied."""

from contextlib import suppress

import pytest

from harness.faults.base import Fault, NotApplied, all_faults, faults_by_id
from harness.faults.changes import first
from harness.faults.mutation import Mutation, Outcome, mutate
from harness.faults.operators import duplicate
from harness.faults.selectors import our_request
from harness.faults.stored import apply, apply_each
from harness.protocol.spec.loading import load_book
from harness.trace.store import lines, load
from harness.trace.trace import Trace
from tests.rules.good_traces import failed, plain_turn, two_threads
from tests.rules.traces import Talk
from tools.matrix import GOOD


def outcome(trace: Trace, fault_id: str, deviations: tuple[str, ...] = ()) -> Mutation:
    return mutate(load_book(), trace, [all_faults()[fault_id]], deviations)[0]


def test_a_fault_that_its_rule_notices_is_killed() -> None:
    expected = Mutation("turn-never-ends", "turn.completes", Outcome.KILLED, ("turn.completes",))
    assert outcome(plain_turn(), "turn-never-ends") == expected


def test_a_fault_without_its_pattern_is_not_applied() -> None:
    assert outcome(plain_turn(), "failed-turn-without-error").outcome is Outcome.NOT_APPLIED
    assert outcome(Talk().trace(), "turn-never-ends").outcome is Outcome.NOT_APPLIED


def test_a_fault_is_masked_where_its_rule_is_a_known_deviation() -> None:
    found = outcome(failed(), "failed-turn-without-error", ("turn.error-iff-failed",))
    assert found.outcome is Outcome.MASKED


def test_a_fault_is_masked_where_its_rule_was_broken_before() -> None:
    trace = Talk().start_thread("uuid-1").start_thread("uuid-2").trace()
    assert outcome(trace, "thread-id-of-another-shape").outcome is Outcome.MASKED


def test_a_violation_that_was_there_before_does_not_kill_a_new_fault() -> None:
    """A new violation counts: the second turn that never ends is seen beside the first."""
    trace = Talk().start_thread().start_turn().plain_turn("turn_2").trace()
    found = outcome(trace, "turn-never-ends")
    assert (found.outcome, found.noticing_rules) == (Outcome.KILLED, ("turn.completes",))


SILENT = Fault(
    "silent",
    rule="turn.completes",
    on="plain-turn",
    reason="nothing is wrong",
    change=first(our_request("thread/start"), duplicate),
)


def test_a_fault_that_no_rule_notices_survives() -> None:
    (found,) = mutate(load_book(), two_threads(), [SILENT])
    assert found.outcome is Outcome.SURVIVED


@pytest.mark.parametrize("name", ["approved-command", "attached", "told"])
def test_all_faults_at_once_give_what_each_gives_alone(name: str) -> None:
    trace = load(GOOD / f"{name}.jsonl")
    alone: dict[str, list[str]] = {}
    for fault in all_faults().values():
        with suppress(NotApplied):
            alone[fault.id] = list(lines(apply(fault, trace)))
    together = apply_each(all_faults().values(), trace)
    assert len(alone) > 20
    assert {key: list(lines(one)) for key, one in together.items()} == alone


def test_the_rule_of_a_fault_decides_what_comes_of_it_without_the_others() -> None:
    trace, faults = load(GOOD / "failed.jsonl"), all_faults().values()
    known = ("turn.completes",)
    short = mutate(load_book(), trace, faults, known, only_own=True)
    long = mutate(load_book(), trace, faults, known)
    assert {one.outcome for one in long} > {Outcome.KILLED, Outcome.MASKED}
    assert [one.outcome for one in short] == [one.outcome for one in long]


def test_a_fault_id_cannot_be_taken_twice() -> None:
    with pytest.raises(ValueError, match="'silent' is taken"):
        faults_by_id([SILENT, SILENT])


def test_a_fault_that_finds_no_place_says_what_it_looked_for() -> None:
    with pytest.raises(NotApplied, match="no turn/completed failed"):
        apply(all_faults()["failed-turn-never-ends"], plain_turn())
