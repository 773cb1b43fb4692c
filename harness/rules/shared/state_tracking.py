"""Walking the state machines of the judge's book along a conversation.

Here: in which state the tables put a turn or an item, by what the view has seen of it. Not here:
the tables (spec.machines), and what it means that a table has no such row (the rules).
"""

from collections.abc import Iterable
from typing import Final

from harness.spec.machines import (
    COUPLINGS,
    INVARIANTS,
    ITEM,
    ITEM_STATUS,
    MACHINES,
    TURN,
    Machine,
)
from harness.trace.frame import Frame
from harness.trace.order import by_arrival, came_before
from harness.trace.values import dig, text
from harness.trace.views import ItemView, TurnView


def walked(machine: Machine, events: Iterable[str], state: str | None = None) -> str:
    """The state after these events, from the initial one if none is given.

    An event without a row changes nothing: that it was wrong is for the rule that met it to say.
    """
    at = machine.initial if state is None else state
    for event in events:
        at = machine.after(at, event) or at
    return at


# The state of a turn that has begun, and how it may end.
RUNNING: Final = walked(TURN, ["turn/start"])
ENDINGS: Final = TURN.endings(RUNNING)
INTERRUPTED: Final = walked(TURN, ["turn/interrupt"], RUNNING)
FAILED: Final = walked(TURN, ["turn error"], RUNNING)
COMPLETED: Final = walked(TURN, ["agent finishes"], RUNNING)
# The states of an item that has begun, and that is finished.
BEGUN: Final = walked(ITEM, ["item/started"])
FINISHED: Final = walked(ITEM, ["item/completed"], BEGUN)


def turn_state(turn: TurnView, *, before: Frame) -> str:
    """The state of a turn by its turn/started and turn/completed that came before a frame.

    turn/completed ends a turn whatever its status says, and one that was never announced too; a
    word that is no final status counts as the agent's having finished.
    """
    state = TURN.initial
    for frame in _in_order(turn.started, turn.completed, before=before):
        if frame.method == "turn/started":
            state = walked(TURN, ["turn/start"], state)
        elif state not in TURN.terminal:
            told = text(dig(frame.params, "turn", "status"))
            state = told if told in ENDINGS else walked(TURN, ["agent finishes"], RUNNING)
    return state


def item_state(item: ItemView, *, before: Frame) -> str:
    """The state of an item by its item/started and item/completed that came before a frame.

    An id that is started again begins anew; item/completed finishes an item that was never started
    too, since nothing is to come after it.
    """
    state = ITEM.initial
    for frame in _in_order(item.started, item.completed, before=before):
        state = BEGUN if frame.method == "item/started" else FINISHED
    return state


def status_begins(item_type: str) -> str:
    """The status with which work on an item begins, "" for a type without a status."""
    machine = ITEM_STATUS.get(item_type)
    return walked(machine, ["work begins"]) if machine is not None else ""


def status_ends(item_type: str) -> tuple[str, ...]:
    """The statuses with which an item may be finished, none for a type without a status."""
    machine = ITEM_STATUS.get(item_type)
    return machine.endings(status_begins(item_type)) if machine is not None else ()


def status_after(turn_state: str, status: str) -> str:
    """What a turn's coming to a state makes of its thread's status; the same where no row says."""
    machine, event = COUPLINGS[("turn", turn_state)]
    return walked(MACHINES[machine], [event], status)


def needs_turn(status: str) -> bool | None:
    """Whether a thread's status says that a turn is in progress (True) or that none is (False).

    None where the table has no row for the status.
    """
    row = INVARIANTS.get(("thread-status", status))
    return None if row is None else RUNNING in row[1]


def _in_order(*lists: list[Frame], before: Frame) -> list[Frame]:
    return by_arrival(frame for frames in lists for frame in frames if came_before(frame, before))
