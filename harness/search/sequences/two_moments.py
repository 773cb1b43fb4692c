"""Turns of two threads at once, each held at a moment, and what ends the first of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.search.fuzz.sessions.plan import PlannedThread, PlannedTurn
from harness.search.sequences import thread_operations as threads
from harness.search.sequences import turn_operations as turns
from harness.search.sequences.draft import Draft
from harness.search.sequences.moments import MOMENTS, Moment
from harness.search.sequences.planning import Goal, PlannedSequence, Writer

MOMENTS_OF_TWO = "of moments of two threads"
# Pairs of turns in one conversation.
PAIRS_EACH = 4
HELD = tuple(moment for moment in MOMENTS if moment.times == 1 and not moment.has_ended)


@dataclass(frozen=True, slots=True)
class Ending:
    """An event of the first of two turns, while the other one is held, or before it begins."""

    name: str
    act: Callable[[Draft, PlannedThread, PlannedTurn], None]
    needs: tuple[str, ...] = ()
    is_before_second: bool = False


def _interrupt(draft: Draft, thread: PlannedThread, turn: PlannedTurn) -> None:
    turns.interrupt(draft, thread, turn)
    turn.drop_questions()


ENDINGS = (
    Ending("the first ends", lambda draft, thread, turn: None),
    Ending("the first is interrupted", _interrupt),
    Ending("the first is steered", turns.steer, ("steering",)),
    Ending(
        "the first is steered before the second begins",
        turns.steer,
        ("steering",),
        is_before_second=True,
    ),
)
Cell = tuple[Moment, Moment, Ending]


def two_moment_goals() -> Iterator[tuple[Goal, tuple[str, ...]]]:
    """Yield every pair of moments with every ending, each with the capabilities that it needs."""
    for cell in _cells():
        first, second, ending = cell
        yield _goal(cell), first.needs + second.needs + ending.needs


def plan_two_moments(goals: set[Goal], *, can_fork: bool) -> Iterator[PlannedSequence]:
    """Yield conversations that hold two turns as `goals` say.

    Where threads can be forked, the second thread of every other conversation is a fork.
    """
    cells = [cell for cell in _cells() if _goal(cell) in goals]
    for place in range(0, len(cells), PAIRS_EACH):
        is_forked = can_fork and place // PAIRS_EACH % 2 == 1
        yield _conversation(cells[place : place + PAIRS_EACH], is_forked)


def _cells() -> Iterator[Cell]:
    for first in HELD:
        for second in HELD:
            for ending in ENDINGS:
                yield first, second, ending


def _goal(cell: Cell) -> Goal:
    first, second, ending = cell
    return Goal(MOMENTS_OF_TWO, (first.name, second.name, ending.name))


def _conversation(cells: Sequence[Cell], is_forked: bool) -> PlannedSequence:
    writer = Writer(Draft(looks=False))
    draft = writer.draft
    one, other = threads.start_pair(draft, forked=is_forked)
    for number, cell in enumerate(cells):
        first, second, ending = cell
        # Ids of questions may be numbers, and how two of them differ must not always be the same.
        (turns.answered_command("accept") if number % 2 else turns.plain_turn)(draft, one)
        # Their turns have the same number: ids of turns may be unique in a thread alone.
        while other.ended_turns < one.ended_turns:
            turns.plain_turn(draft, other)
        began = draft.step_count
        turn = first.begin(draft, one)
        if ending.is_before_second:
            ending.act(draft, one, turn)
        held = second.begin(draft, other)
        if not ending.is_before_second:
            ending.act(draft, one, turn)
        draft.end_turn(one)
        if held.asks:
            # What was accepted for one turn must not let the other one go on.
            draft.answer(other, held, "decline")
        draft.end_turn(other)
        refused = ("turn/steer", "turn/interrupt")
        writer.close_span(" ".join(_goal(cell).operations), began, refused, {_goal(cell): ()})
    return writer.finish("Turns of two threads at once")
