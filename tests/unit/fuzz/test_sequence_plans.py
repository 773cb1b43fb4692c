"""Plans of sequences, without a server: every goal is reached, and each conversation loads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

import pytest

from harness.scenario.loader import load_text
from harness.scenario.scenario_text import scenario_text
from harness.search.fuzz.sessions.play import load_document
from harness.search.sequences.alphabet import OPERATIONS, SERVER_OPERATIONS, Operation
from harness.search.sequences.draft import Draft
from harness.search.sequences.goals import PLANS, all_goals
from harness.search.sequences.kept_plan import KEPT, KEPT_ACROSS
from harness.search.sequences.kept_state import KEPT_STATES, use_order
from harness.search.sequences.planning import (
    FORKED,
    ONE_THREAD,
    SERVER,
    TWO_THREADS,
    Goal,
    PlannedSequence,
    plan_tuples,
    write_sequence,
)
from harness.search.sequences.turn_operations import accepted_patch
from harness.search.sequences.two_moments import MOMENTS_OF_TWO, two_moment_goals
from harness.search.sequences.values import APPROVALS, LIMITED, is_valid_approval, rows_of


def planned(ways: int, *lacks: str) -> Iterator[PlannedSequence]:
    """Return the conversations for all goals that need none of the capabilities `lacks`."""
    goals = {goal for goal, needs in all_goals(ways) if not set(lacks) & set(needs)}
    offered = [operation for operation in OPERATIONS if not set(lacks) & set(operation.needs)]
    for plan in PLANS:
        yield from plan.conversations(offered, {goal for goal in goals if goal.scope == plan.scope})


@pytest.mark.parametrize("ways", [2, 3])
def test_every_goal_is_planned(ways: int) -> None:
    reached = {goal for sequence in planned(ways) for goal in sequence.goals}
    assert reached == {goal for goal, _ in all_goals(ways)}


def test_goals_of_a_small_server_are_planned_without_what_it_lacks() -> None:
    lacks = ("history", "command-approval", "several-clients", "sandbox-policy")
    reached = {goal for sequence in planned(2, *lacks) for goal in sequence.goals}
    assert reached == {goal for goal, needs in all_goals(2) if not set(lacks) & set(needs)}
    assert Goal(ONE_THREAD, ("steer", "compact")) in reached


def test_plan_is_the_same_each_time() -> None:
    first = [sequence.document for sequence in islice(planned(2), 12)]
    assert first == [sequence.document for sequence in islice(planned(2), 12)]


def test_each_conversation_is_a_scenario() -> None:
    for sequence in planned(2):
        load_document(sequence.document)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.scope)
def test_conversation_loads_from_its_text(plan: object) -> None:
    place = PLANS.index(plan)  # pyright: ignore[reportArgumentType]
    goals = {goal for goal, _ in all_goals(2) if goal.scope == PLANS[place].scope}
    sequence = next(PLANS[place].conversations(OPERATIONS, goals))
    loaded = load_text(scenario_text(sequence.document, "planned"))
    assert loaded.document.value == sequence.document


def test_operations_of_a_goal_are_neighbours() -> None:
    for sequence in planned(2):
        for place, span in enumerate(sequence.spans):
            for goal, earlier in span.goals:
                if goal.scope == ONE_THREAD:
                    assert earlier == tuple(range(place - len(goal.operations) + 1, place))
                    names = [sequence.spans[index].operation for index in (*earlier, place)]
                    assert tuple(names) == goal.operations


def test_spans_follow_each_other() -> None:
    for sequence in islice(planned(2), 40):
        for span, next_span in zip(sequence.spans, sequence.spans[1:], strict=False):
            assert span.first < span.last <= next_span.first


def test_goals_that_nothing_reaches_end_the_plan() -> None:
    endless = Operation("endless", lambda draft, _: None, ended_turns=99)
    assert (
        list(plan_tuples([OPERATIONS[0], endless], 2, {Goal(ONE_THREAD, ("endless",) * 2)})) == []
    )


def test_short_sequence_needs_the_turns_of_its_operations() -> None:
    by_name = {operation.name: operation for operation in OPERATIONS}
    assert write_sequence([by_name["rollback 2"]]) is None
    assert write_sequence([by_name["turn"], by_name["rollback 1"]]) is not None


def test_kept_state_is_used_right_before_and_right_after_an_operation() -> None:
    states = {state.name for state in KEPT_STATES}
    for sequence in planned(2):
        names = [span.operation for span in sequence.spans]
        for place, span in enumerate(sequence.spans):
            for goal, earlier in span.goals:
                if goal.scope in (KEPT, KEPT_ACROSS):
                    assert (names[earlier[0]], names[place]) == goal.operations
                    assert set(names[earlier[0] + 1 : place]) <= states


@pytest.mark.parametrize("scope", [KEPT, KEPT_ACROSS, ONE_THREAD, TWO_THREADS, FORKED])
def test_finding_is_tried_with_shorter_conversations_first(scope: str) -> None:
    plan = next(plan for plan in PLANS if plan.scope == scope)
    goals = {goal for goal, _ in all_goals(2) if goal.scope == scope}
    sequence = next(plan.conversations(OPERATIONS, goals))
    assert sequence.shorten is not None
    sizes = [len(short["client"]) for short in sequence.shorten(len(sequence.spans) - 1)]
    assert sizes == sorted(sizes)
    assert 0 < sizes[0] < len(sequence.document["client"]) * 2 / 3
    for short in sequence.shorten(len(sequence.spans) - 1):
        load_document(short)


def test_every_two_valid_values_meet() -> None:
    rows = rows_of(APPROVALS, LIMITED, is_valid_approval)
    assert all(map(is_valid_approval, rows))
    for first, second in combinations(APPROVALS, 2):
        for one in APPROVALS[first]:
            for two in APPROVALS[second]:
                both = {"operation": "command", "decision": "accept", first: one, second: two}
                if is_valid_approval(both):
                    assert any(row[first] == one and row[second] == two for row in rows)


def test_nothing_ends_the_server_between_the_operations_of_a_goal() -> None:
    ends = {operation.name for operation in SERVER_OPERATIONS}
    for sequence in planned(2):
        for place, span in enumerate(sequence.spans):
            for goal, earlier in span.goals:
                if goal.scope == SERVER:
                    between = sequence.spans[earlier[0] + 1 : place]
                    assert not ends & {span.operation for span in between}


def test_two_turns_at_once_have_the_same_number_in_their_threads() -> None:
    """Ids of turns may be unique in a thread alone."""
    held = 0
    for sequence in planned(2):
        spans = [span for span in sequence.spans if span.goals]
        if not spans or spans[0].goals[0][0].scope != MOMENTS_OF_TWO:
            continue
        threads = [
            (number, step["start_turn"]["thread"])
            for number, step in enumerate(sequence.document["client"], 1)
            if "start_turn" in step
        ]
        for span in spans:
            first, second = (
                (number, thread) for number, thread in threads if span.first < number <= span.last
            )
            numbers = [
                sum(other == thread and before <= number for before, other in threads)
                for number, thread in (first, second)
            ]
            is_fork = any("thread/fork" in str(step) for step in sequence.document["client"])
            # A fork begins with the turn that its thread had.
            assert numbers[0] == numbers[1] + is_fork
            held += 1
    assert held == len(list(two_moment_goals()))


def test_order_of_threads_is_listed_before_and_after_a_turn_of_the_oldest() -> None:
    draft = Draft(looks=False)
    thread = draft.start_thread()
    oldest: list[str] = []
    for _ in range(4):
        use_order(draft, thread)
        steps = draft.plan.client[-5:]
        kinds = [next(iter(step)) for step in steps]
        assert kinds == ["request", "start_turn", "wait", "wait", "request"]
        assert steps[0]["request"]["params"] == steps[-1]["request"]["params"]
        oldest.append(next(step["start_turn"]["thread"] for step in steps if "start_turn" in step))
    assert len(set(oldest[:3])) == 3
    assert oldest[3] == oldest[0]


def test_file_of_a_thread_is_added_in_each_folder_in_which_it_works() -> None:
    draft = Draft(looks=False)
    thread = draft.start_thread()
    for place in ("{cwd}", "{cwd}", "{cwd}/other", "{cwd}"):
        draft.notes(thread).place = place
        accepted_patch(draft, thread)
    (script,) = draft.document("Patches")["model"].values()
    patches = [part["patch"] for step in script for part in step["reply"] if "patch" in part]
    assert [next(iter(patch)) for patch in patches] == ["add", "update", "add", "update"]
