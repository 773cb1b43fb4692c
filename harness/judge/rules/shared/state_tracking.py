"""States of turns, items and threads in a conversation, by the state machines of the book."""

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
    """Return the state after these events, from the initial one if `state` is None.

    An event that the machine does not allow changes nothing; the rule that listens to it reports
    it.
    """
    current = machine.initial if state is None else state
    for event in events:
        current = machine.next_state(current, event) or current
    return current


# The state of a running turn, and the states in which it may end.
RUNNING: Final = state_after(TURN, ["turn/start"])
ENDINGS: Final = TURN.terminal_next_states(RUNNING)
INTERRUPTED: Final = state_after(TURN, ["turn/interrupt"], RUNNING)
FAILED: Final = state_after(TURN, ["turn error"], RUNNING)
COMPLETED: Final = state_after(TURN, ["agent finishes"], RUNNING)
# The states of a running item and of a finished one.
BEGUN: Final = state_after(ITEM, ["item/started"])
FINISHED: Final = state_after(ITEM, ["item/completed"], BEGUN)


def turn_state(turn: TurnView, *, before: Frame) -> str:
    """Return the state of a turn after its turn/started and turn/completed before a frame.

    turn/completed ends a turn whatever its status is, even one that was never announced. A status
    that is not final counts as completed.
    """
    state = TURN.initial
    for frame in _in_order(turn.starts, turn.completions, before=before):
        if frame.method == "turn/started":
            state = state_after(TURN, ["turn/start"], state)
        elif state not in TURN.terminal:
            status = text(dig(frame.params, "turn", "status"))
            state = status if status in ENDINGS else state_after(TURN, ["agent finishes"], RUNNING)
    return state


def item_state(item: ItemView, *, before: Frame) -> str:
    """Return the state of an item after its item/started and item/completed before a frame.

    An id that is started again is a new item. item/completed also ends an item that never started:
    nothing may follow it.
    """
    state = ITEM.initial
    for frame in _in_order(item.starts, item.completions, before=before):
        state = BEGUN if frame.method == "item/started" else FINISHED
    return state


def status_begins(item_type: str) -> str:
    """Return the status with which work on an item begins, "" for a type without a status."""
    machine = ITEM_STATUS.get(item_type)
    return state_after(machine, ["work begins"]) if machine is not None else ""


def status_ends(item_type: str) -> tuple[str, ...]:
    """Return the statuses with which an item may be finished, none for a type without a status."""
    machine = ITEM_STATUS.get(item_type)
    return machine.terminal_next_states(status_begins(item_type)) if machine is not None else ()


def status_after(turn_state: str, status: str) -> str:
    """Return the status of a thread after its turn reached a state; by default unchanged."""
    machine, event = COUPLINGS[("turn", turn_state)]
    return state_after(MACHINES[machine], [event], status)


def needs_turn(status: str) -> bool | None:
    """Return whether a thread's status means that a turn is in progress.

    None if the book says nothing about the status.
    """
    row = INVARIANTS.get(("thread-status", status))
    return None if row is None else RUNNING in row[1]


def _in_order(*lists: list[Frame], before: Frame) -> list[Frame]:
    return by_arrival(frame for frames in lists for frame in frames if came_before(frame, before))
