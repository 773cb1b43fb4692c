"""The states of turns, items and threads in a conversation, by the state machines of the book."""

from collections.abc import Iterable
from typing import Final

from harness.protocol.spec.machines import (
    COUPLINGS,
    INVARIANTS,
    ITEM,
    ITEM_STATUS,
    MACHINES,
    TURN,
    Machine,
)
from harness.protocol.values import dig, text
from harness.trace.frame import Frame
from harness.trace.order import by_arrival, came_before
from harness.trace.views import ItemView, TurnView


def state_after(machine: Machine, events: Iterable[str], state: str | None = None) -> str:
    """The state after these events, from the initial one if none is given.

    An event without a row changes nothing; the rule that listens to it reports it.
    """
    at = machine.initial if state is None else state
    for event in events:
        at = machine.after(at, event) or at
    return at


# The state of a turn that has begun, and the states in which it may end.
RUNNING: Final = state_after(TURN, ["turn/start"])
ENDINGS: Final = TURN.endings(RUNNING)
INTERRUPTED: Final = state_after(TURN, ["turn/interrupt"], RUNNING)
FAILED: Final = state_after(TURN, ["turn error"], RUNNING)
COMPLETED: Final = state_after(TURN, ["agent finishes"], RUNNING)
# The states of an item that has begun, and of one that is finished.
BEGUN: Final = state_after(ITEM, ["item/started"])
FINISHED: Final = state_after(ITEM, ["item/completed"], BEGUN)


def turn_state(turn: TurnView, *, before: Frame) -> str:
    """The state of a turn after its turn/started and turn/completed that came before a frame.

    turn/completed ends a turn whatever its status is, and also ends a turn that was never
    announced. A status that is not a final one counts as completed.
    """
    state = TURN.initial
    for frame in _in_order(turn.started, turn.completed, before=before):
        if frame.method == "turn/started":
            state = state_after(TURN, ["turn/start"], state)
        elif state not in TURN.terminal:
            told = text(dig(frame.params, "turn", "status"))
            state = told if told in ENDINGS else state_after(TURN, ["agent finishes"], RUNNING)
    return state


def item_state(item: ItemView, *, before: Frame) -> str:
    """The state of an item after its item/started and item/completed that came before a frame.

    An id that is started again is a new item. item/completed also finishes an item that was never
    started: nothing may follow it.
    """
    state = ITEM.initial
    for frame in _in_order(item.started, item.completed, before=before):
        state = BEGUN if frame.method == "item/started" else FINISHED
    return state


def status_begins(item_type: str) -> str:
    """The status with which work on an item begins, "" for a type without a status."""
    machine = ITEM_STATUS.get(item_type)
    return state_after(machine, ["work begins"]) if machine is not None else ""


def status_ends(item_type: str) -> tuple[str, ...]:
    """The statuses with which an item may be finished, none for a type without a status."""
    machine = ITEM_STATUS.get(item_type)
    return machine.endings(status_begins(item_type)) if machine is not None else ()


def status_after(turn_state: str, status: str) -> str:
    """The status of a thread after one of its turns reached a state; unchanged without a row."""
    machine, event = COUPLINGS[("turn", turn_state)]
    return state_after(MACHINES[machine], [event], status)


def needs_turn(status: str) -> bool | None:
    """Return whether a thread's status says that a turn is in progress (True) or that none is
    (False).

    None where the table has no row for the status.
    """
    row = INVARIANTS.get(("thread-status", status))
    return None if row is None else RUNNING in row[1]


def _in_order(*lists: list[Frame], before: Frame) -> list[Frame]:
    return by_arrival(frame for frames in lists for frame in frames if came_before(frame, before))
