"""A deterministic plan of short conversations in which every ordered pair of operations occurs.

The pairs of n operations are the edges of a graph, and a conversation is a path in it. Each step
takes an edge that no conversation has yet (a greedy path cover, as in the sequence covering arrays
of Kuhn et al., but of neighbours: with other operations in between a defect is often masked).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.search.fuzz.sessions.plan import PlannedThread
from harness.search.fuzz.sessions.turns import Json
from harness.search.sequences.alphabet import OPERATIONS, Operation, ServerOperation
from harness.search.sequences.draft import ALWAYS_ASK, Draft
from harness.search.sequences.thread_operations import start_in_other_folder

# Operations of one conversation: more make findings slower to shrink, and hide those after one.
OPERATIONS_EACH = 14
# Threads of a conversation whose server is restarted: a restart serves them all.
THREADS_OF_RESTART = 4
ROUNDS_OF_RESTART = 4
# Operations on each thread of the shorter conversations that confirm a finding.
SHORTER_NUMBERS = (1, 2, 3, 5, 8)
# Turns before the first operation: three rollbacks of two turns need six.
MAX_FIRST_TURNS = 6

ONE_THREAD, SERVER = "on one thread", "around a restart"
TWO_THREADS, FORKED = "across two threads", "across a thread and its fork"
# Yields shorter documents that may show what a document showed in the span of this place.
Shorten = Callable[[int], Iterator[Json]]


class Goal(NamedTuple):
    """A tuple of operations to cover, in their order; `scope` says on which threads."""

    scope: str
    operations: tuple[str, ...]

    def __str__(self) -> str:
        """Return the operations in their order, with the scope."""
        return f"{', then '.join(self.operations)}, {self.scope}"


@dataclass(frozen=True, slots=True)
class Span:
    """The steps of one operation, numbered from 1: those after `first` up to `last`.

    `goals` are covered once its steps were carried out, if those of the spans before it in the
    goal were too: `after` are the indexes of these spans.
    """

    operation: str
    first: int
    last: int
    refused: tuple[str, ...] = ()
    goals: tuple[tuple[Goal, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedSequence:
    """A planned conversation: its document, the spans of its operations, and shorter ones."""

    document: Json
    spans: tuple[Span, ...]
    shorten: Shorten | None = None

    @property
    def goals(self) -> set[Goal]:
        """Return the goals that it covers if everything is carried out."""
        return {goal for span in self.spans for goal, _ in span.goals}


@dataclass(slots=True)
class Writer:
    """A conversation in progress."""

    draft: Draft
    spans: list[Span] = field(default_factory=list[Span])

    def perform(
        self, operation: Operation, thread: PlannedThread, goals: dict[Goal, tuple[int, ...]]
    ) -> PlannedThread:
        """Add an operation; return the thread with which its sequence goes on."""
        first = self.draft.step_count
        next_thread = operation.act(self.draft, thread) or thread
        self.close_span(operation.name, first, operation.refused, goals)
        if self.draft.looks:
            self.draft.look(next_thread)
        return next_thread

    def perform_on_server(
        self, operation: ServerOperation, goals: dict[Goal, tuple[int, ...]]
    ) -> None:
        """Add an operation on the server."""
        first = self.draft.step_count
        operation.act(self.draft)
        self.close_span(operation.name, first, (), goals)

    def close_span(
        self,
        name: str,
        first: int,
        refused: tuple[str, ...],
        goals: dict[Goal, tuple[int, ...]],
    ) -> None:
        """Record that the steps after `first` are an operation."""
        last = self.draft.step_count
        self.spans.append(Span(name, first, last, refused, tuple(goals.items())))

    def finish(self, title: str, shorten: Shorten | None = None) -> PlannedSequence:
        """End the conversation with a look at each thread; return it."""
        for thread in self.draft.plan.threads:
            self.draft.plan.settle(thread)
            self.draft.look(thread)
        self.draft.look_at_all(self.draft.plan.threads[0])
        return PlannedSequence(self.draft.document(title), tuple(self.spans), shorten)


@dataclass(frozen=True, slots=True)
class Cast:
    """The threads on which the operations of a conversation are performed in turn.

    `is_pair` are two threads, `is_forked` a thread and its fork, else two in different folders.
    """

    is_pair: bool = False
    is_forked: bool = False

    def open(self, first_turns: int) -> tuple[Writer, list[PlannedThread]]:
        """Begin a conversation; its threads have this number of turns."""
        # The conversations on two threads are looked at in their end alone: a look can mend.
        writer = Writer(Draft(looks=not self.is_pair, policy=ALWAYS_ASK))
        draft, opening = writer.draft, OPERATIONS[0]
        first = draft.start_thread()
        has_other = self.is_pair and not self.is_forked
        # Their turns have the same numbers: ids of turns may be unique in a thread alone.
        threads = [first, start_in_other_folder(draft)] if has_other else [first]
        for number in range(len(threads) * first_turns):
            place = number % len(threads)
            threads[place] = writer.perform(opening, threads[place], {})
        if self.is_forked:
            threads.append(draft.fork(first))
        return writer, threads


_CASTS = {
    ONE_THREAD: Cast(),
    TWO_THREADS: Cast(is_pair=True),
    FORKED: Cast(is_pair=True, is_forked=True),
}


def plan_tuples(
    operations: Sequence[Operation], ways: int, goals: set[Goal], scope: str = ONE_THREAD
) -> Iterator[PlannedSequence]:
    """Yield conversations in which the tuples of `ways` neighbours occur, as the scope says.

    Goals that no conversation can reach are left out.
    """
    return _Cover(operations, goals, ways, scope).plan()


class _Cover:
    """A greedy path cover of the tuples of neighbours."""

    def __init__(
        self, operations: Sequence[Operation], goals: set[Goal], ways: int, scope: str
    ) -> None:
        self._names = {operation.name: operation for operation in operations}
        self._ways = ways
        self._scope = scope
        self._cast = _CASTS[scope]
        # Each beginning of a goal, with its possible ends in the order of the alphabet.
        self._ends: dict[tuple[str, ...], dict[str, None]] = {}
        order = list(self._names)
        for goal in sorted(goals, key=lambda goal: [order.index(name) for name in goal.operations]):
            self._ends.setdefault(goal.operations[:-1], {})[goal.operations[-1]] = None

    def plan(self) -> Iterator[PlannedSequence]:
        """Yield conversations until one would reach nothing new, with any number of first turns."""
        first_turns = 1
        while self._ends and first_turns <= MAX_FIRST_TURNS:
            before = sum(map(len, self._ends.values()))
            sequence = self._conversation(first_turns)
            if sum(map(len, self._ends.values())) == before:
                first_turns += 1
            else:
                yield sequence

    def _conversation(self, first_turns: int) -> PlannedSequence:
        writer, threads = self._cast.open(first_turns)
        opened = len(writer.spans)
        # A fork is no operation of the alphabet here, and so no neighbour either.
        before = () if self._cast.is_forked else (OPERATIONS[0].name,) * opened
        recent = before[len(before) - (self._ways - 1) :] if self._ways > 1 else ()
        for number in range(OPERATIONS_EACH * len(threads)):
            thread = threads[number % len(threads)]
            name = self._next(writer.draft, thread, recent)
            if name is None:
                break
            goals: dict[Goal, tuple[int, ...]] = {}
            if len(recent) == self._ways - 1:
                ends = self._ends.get(recent, {})
                if name in ends:
                    del ends[name]
                    if not ends:
                        del self._ends[recent]
                    place = len(writer.spans)
                    earlier = tuple(range(place - self._ways + 1, place))
                    goals = {Goal(self._scope, (*recent, name)): earlier}
            threads[number % len(threads)] = writer.perform(self._names[name], thread, goals)
            recent = (*recent, name)[-(self._ways - 1) :]

        performed = [self._names[span.operation] for span in writer.spans[opened:]]

        def shorten(place: int) -> Iterator[Json]:
            """Yield conversations of the last operations up to this place."""
            for number in SHORTER_NUMBERS:
                count = number * len(threads)
                end = place - opened + 1
                if 0 < count < end:
                    # The last of them must be on the thread that it was on.
                    some = performed[(end - count) // len(threads) * len(threads) : end]
                    sequence = write_sequence(some, self._scope)
                    if sequence is not None:
                        yield sequence.document

        return writer.finish("A sequence of operations", shorten)

    def _next(self, draft: Draft, thread: PlannedThread, recent: tuple[str, ...]) -> str | None:
        """Return the operation that reaches a new tuple, else one that leads to one; or None."""
        possible = [
            name for name, operation in self._names.items() if operation.is_possible(draft, thread)
        ]
        fresh = [name for name in possible if name in self._ends.get(recent, {})]
        leading = [name for name in possible if self._count_left((*recent, name))]
        candidates = fresh or leading
        if not candidates and self._ends:
            # With triples, two steps may be needed to come to a beginning with ends left.
            heads = {beginning[0] for beginning in self._ends}
            candidates = [name for name in possible if name in heads]
        return max(candidates, key=lambda name: self._count_left((*recent, name)), default=None)

    def _count_left(self, names: tuple[str, ...]) -> int:
        return len(self._ends.get(names[-(self._ways - 1) :], ()))


def write_sequence(
    operations: Sequence[Operation], scope: str = ONE_THREAD
) -> PlannedSequence | None:
    """Return a conversation of these operations alone, None if one of them is impossible."""
    writer, threads = _CASTS[scope].open(1)
    for number, operation in enumerate(operations):
        thread = threads[number % len(threads)]
        if not operation.is_possible(writer.draft, thread):
            return None
        threads[number % len(threads)] = writer.perform(operation, thread, {})
    return writer.finish("A short sequence of operations")


def plan_restarts(
    operations: Sequence[Operation], server_operations: Sequence[ServerOperation]
) -> Iterator[PlannedSequence]:
    """Yield conversations in which every operation comes before and after each server operation."""
    for turning in range(len(server_operations)):
        queue = list(operations)
        while queue:
            writer = Writer(Draft(looks=False))
            threads = [writer.draft.start_thread() for _ in range(THREADS_OF_RESTART - 1)]
            threads.append(start_in_other_folder(writer.draft))
            opening = operations[0]
            last = [-1] * len(threads)
            for place, thread in enumerate(threads):
                writer.perform(opening, thread, {})
                last[place] = len(writer.spans) - 1
            for number in range(ROUNDS_OF_RESTART):
                server = server_operations[(number + turning) % len(server_operations)]
                goals: dict[Goal, tuple[int, ...]] = {
                    Goal(SERVER, (writer.spans[place].operation, server.name)): (place,)
                    for place in last
                    if place >= 0
                }
                writer.perform_on_server(server, goals)
                # A thread without a new operation has none right before the next end.
                last = [-1] * len(threads)
                if not queue or number == ROUNDS_OF_RESTART - 1:
                    break
                at = len(writer.spans) - 1
                if (number + turning) % 2:
                    # In every other round, since a look can mend.
                    writer.draft.look_at_unloaded(threads)
                for place, thread in enumerate(threads):
                    operation = _take(queue, writer.draft, thread)
                    if operation is None:
                        continue
                    if operation.resumes:
                        writer.draft.resume(thread)
                    goals = {Goal(SERVER, (server.name, operation.name)): (at,)}
                    writer.perform(operation, thread, goals)
                    last[place] = len(writer.spans) - 1
            for thread in writer.draft.plan.threads:
                writer.draft.resume(thread)
            yield writer.finish("Operations before and after the end of the server")


def _take(queue: list[Operation], draft: Draft, thread: PlannedThread) -> Operation | None:
    """Take the first operation that is possible now, None if there is none."""
    for place, operation in enumerate(queue):
        if operation.is_possible(draft, thread):
            return queue.pop(place)
    return None
