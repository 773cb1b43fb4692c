"""Every goal of the sequences, and the plans that reach them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.search.sequences.alphabet import OPERATIONS, SERVER_OPERATIONS, Operation
from harness.search.sequences.kept_plan import KEPT, KEPT_ACROSS, kept_goals, plan_kept_states
from harness.search.sequences.moments import MOMENTS_OF_TURN, moment_goals, plan_moments
from harness.search.sequences.planning import (
    FORKED,
    ONE_THREAD,
    SERVER,
    TWO_THREADS,
    Goal,
    PlannedSequence,
    plan_restarts,
    plan_tuples,
)
from harness.search.sequences.two_moments import (
    MOMENTS_OF_TWO,
    plan_two_moments,
    two_moment_goals,
)
from harness.search.sequences.values import VALUES, plan_values, value_goals


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan for the goals of one scope: its conversations with the offered operations."""

    scope: str
    conversations: Callable[[Sequence[Operation], set[Goal]], Iterator[PlannedSequence]]


def all_goals(ways: int) -> Iterator[tuple[Goal, tuple[str, ...]]]:
    """Yield every goal of the alphabet with the capabilities that it needs.

    With 2 ways these are every pair, every operation three times in a row, and every operation
    before and after the end of the server, and before the use of each kept state; requests at each
    moment of a turn; turns of two threads at once; and combinations of values. With 3 ways also
    every triple of the core operations.
    """
    alone = [operation for operation in OPERATIONS if not operation.setup]
    for first in OPERATIONS:
        yield Goal(ONE_THREAD, (first.name,) * 3), first.needs
        for second in OPERATIONS:
            yield Goal(ONE_THREAD, (first.name, second.name)), first.needs + second.needs
    for first in alone:
        for second in alone:
            needs = first.needs + second.needs
            yield Goal(TWO_THREADS, (first.name, second.name)), needs
            yield Goal(FORKED, (first.name, second.name)), (*needs, "history")
        for server in SERVER_OPERATIONS:
            yield Goal(SERVER, (first.name, server.name)), first.needs + server.needs
            yield Goal(SERVER, (server.name, first.name)), first.needs + server.needs
    core = [operation for operation in OPERATIONS if operation.is_core] if ways > 2 else []
    for first in core:
        for second in core:
            for third in core:
                needs = first.needs + second.needs + third.needs
                yield Goal(ONE_THREAD, (first.name, second.name, third.name)), needs
    yield from kept_goals()
    yield from moment_goals()
    yield from two_moment_goals()
    yield from value_goals()


def _on_one_thread(offered: Sequence[Operation], goals: set[Goal]) -> Iterator[PlannedSequence]:
    """Yield conversations for the pairs, then for the triples.

    Conversations with several clients come last: their server listens, and is another process.
    """
    several = {operation.name for operation in offered if operation.setup}
    plain = [operation for operation in offered if not operation.setup]
    alone = {goal for goal in goals if not several.intersection(goal.operations)}
    for some, of_some in ((plain, alone), (offered, goals - alone)):
        for length in (2, 3):
            of_length = {goal for goal in of_some if len(goal.operations) == length}
            yield from plan_tuples(some, length, of_length)


def _plan_across(scope: str) -> Plan:
    def conversations(offered: Sequence[Operation], goals: set[Goal]) -> Iterator[PlannedSequence]:
        plain = [operation for operation in offered if not operation.setup]
        yield from plan_tuples(plain, 2, goals, scope)

    return Plan(scope, conversations)


def _plan_for_kept_states(scope: str) -> Plan:
    return Plan(scope, lambda offered, goals: plan_kept_states(offered, goals, scope))


def _moments_of_two(offered: Sequence[Operation], goals: set[Goal]) -> Iterator[PlannedSequence]:
    can_fork = any(operation.name == "fork" for operation in offered)
    yield from plan_two_moments(goals, can_fork=can_fork)


def _around_restarts(offered: Sequence[Operation], goals: set[Goal]) -> Iterator[PlannedSequence]:
    names = {name for goal in goals for name in goal.operations}
    plain = [operation for operation in offered if operation.name in names and not operation.setup]
    servers = [operation for operation in SERVER_OPERATIONS if operation.name in names]
    if plain and servers:
        yield from plan_restarts(plain, servers)


# Those that find most in the shortest time come first.
PLANS = (
    _plan_for_kept_states(KEPT),
    Plan(MOMENTS_OF_TWO, _moments_of_two),
    Plan(SERVER, _around_restarts),
    _plan_for_kept_states(KEPT_ACROSS),
    Plan(MOMENTS_OF_TURN, lambda _, goals: plan_moments(goals)),
    Plan(ONE_THREAD, _on_one_thread),
    Plan(VALUES, lambda _, goals: plan_values(goals)),
    _plan_across(FORKED),
    _plan_across(TWO_THREADS),
)
