"""Conversations that use each kept state before and after every operation."""

from collections.abc import Iterator, Sequence

from harness.search.fuzz.sessions.plan import PlannedThread
from harness.search.fuzz.sessions.turns import UNTRUSTED, Json
from harness.search.sequences.alphabet import (
    OPERATIONS,
    SERVER_OPERATIONS,
    Operation,
    ServerOperation,
)
from harness.search.sequences.draft import Draft
from harness.search.sequences.kept_state import GROUPS, KEPT_STATES, POLICIES, KeptState
from harness.search.sequences.planning import Goal, PlannedSequence, Writer
from harness.search.sequences.thread_operations import start_elsewhere, start_pair
from harness.search.sequences.turn_operations import plain_turn

KEPT = "of an operation and a kept state"
KEPT_ACROSS = "of an operation on another thread and a kept state"
# Operations of one conversation.
OPERATIONS_EACH = 3


def kept_goals() -> Iterator[tuple[Goal, tuple[str, ...]]]:
    """Yield every operation before every kept state, each with the capabilities that it needs."""
    for state in KEPT_STATES:
        for operation in (*OPERATIONS, *SERVER_OPERATIONS):
            yield Goal(KEPT, (operation.name, state.name)), operation.needs + state.needs
        for operation in OPERATIONS:
            if not operation.setup:
                needs = (*operation.needs, *state.needs, "history")
                yield Goal(KEPT_ACROSS, (operation.name, state.name)), needs


def plan_kept_states(
    operations: Sequence[Operation], goals: set[Goal], scope: str
) -> Iterator[PlannedSequence]:
    """Yield conversations for the goals of one scope, those with several clients last."""
    names = {goal.operations[0] for goal in goals}
    every = [*operations, *(SERVER_OPERATIONS if scope == KEPT else ())]
    chosen = [operation for operation in every if operation.name in names]
    for has_setup in (False, True):
        some = [operation for operation in chosen if bool(operation.setup) == has_setup]
        for group in GROUPS:
            states = [
                state
                for state in KEPT_STATES
                if state.group == group and any(goal.operations[1] == state.name for goal in goals)
            ]
            for place in range(0, len(some), OPERATIONS_EACH) if states else ():
                yield _Conversation(states, scope).plan(some[place : place + OPERATIONS_EACH])


class _Conversation:
    """A conversation that uses some kept states; its operations are on the thread, or on others."""

    def __init__(self, states: Sequence[KeptState], scope: str) -> None:
        self._states = states
        self._scope = scope

    def plan(self, operations: Sequence[Operation | ServerOperation]) -> PlannedSequence:
        """Return the conversation with these operations, each followed by every state."""
        policy = POLICIES.get(self._states[0].group, UNTRUSTED)
        writer = Writer(Draft(looks=False, policy=policy))
        draft = writer.draft
        if self._scope == KEPT_ACROSS:
            thread, fork = start_pair(draft, forked=True)
            others = [fork, start_elsewhere(draft)]
        else:
            thread, others = draft.start_thread(), []
        # Each place of a span, with the state that is used there and the number of operations.
        uses: dict[int, tuple[KeptState, int]] = {}
        for state in self._states:
            state.use(draft, thread)
        for number, operation in enumerate(operations, 1):
            if isinstance(operation, ServerOperation):
                writer.perform_on_server(operation, {})
                draft.resume(thread)
            elif others:
                others = [_perform(writer, operation, other) for other in others]
            else:
                thread = _perform(writer, operation, thread)
            at = len(writer.spans) - 1
            for state in self._states:
                goal = Goal(self._scope, (operation.name, state.name))
                uses[len(writer.spans)] = state, number
                first = draft.step_count
                state.use(draft, thread)
                writer.close_span(state.name, first, (), {goal: (at,)})

        def shorten(place: int) -> Iterator[Json]:
            """Yield conversations with the one state and the last operations before it."""
            state, number = uses.get(place, (self._states[-1], len(operations)))
            for count in (1, 2):
                if count < len(operations) or len(self._states) > 1:
                    some = operations[max(0, number - count) : number]
                    yield _Conversation([state], self._scope).plan(some).document

        return writer.finish("What is kept, after other operations", shorten)


def _perform(writer: Writer, operation: Operation, thread: PlannedThread) -> PlannedThread:
    """Perform an operation, after the turns that it needs; return the thread that goes on."""
    while thread.ended_turns < operation.ended_turns:
        plain_turn(writer.draft, thread)
    return writer.perform(operation, thread, {})
