"""State tables of threads and turns.

Source: session-protocol "Turn status"; the transitions of a thread's status are not shown there, so
they are the shipping server's.
"""

from typing import Literal

from harness.protocol.wire.turn import TurnStatus

ThreadState = Literal["notLoaded", "idle", "active", "systemError"]
ThreadEvent = Literal["started", "turn-started", "turn-ended", "turn-failed", "unloaded"]
TurnEvent = Literal["steered", "finished", "interrupted", "failed"]

THREAD: dict[tuple[ThreadState, ThreadEvent], ThreadState] = {
    ("notLoaded", "started"): "idle",
    ("idle", "turn-started"): "active",
    ("systemError", "turn-started"): "active",
    ("active", "turn-ended"): "idle",
    ("active", "turn-failed"): "systemError",
    ("idle", "unloaded"): "notLoaded",
    ("systemError", "unloaded"): "notLoaded",
}

TURN: dict[tuple[TurnStatus, TurnEvent], TurnStatus] = {
    ("inProgress", "steered"): "inProgress",
    ("inProgress", "finished"): "completed",
    ("inProgress", "interrupted"): "interrupted",
    ("inProgress", "failed"): "failed",
}

COUPLING: dict[TurnStatus, ThreadEvent] = {
    "inProgress": "turn-started",
    "completed": "turn-ended",
    "interrupted": "turn-ended",
    "failed": "turn-failed",
}
"""The event of a thread that follows from a turn's new status."""


class IllegalTransition(Exception):
    """A transition that is not in the table: the server has a bug."""


def next_thread_state(state: ThreadState, event: ThreadEvent) -> ThreadState:
    """Return the thread's next state by the table. Raises IllegalTransition."""
    try:
        return THREAD[state, event]
    except KeyError:
        raise IllegalTransition(f"a thread that is {state} cannot take {event}") from None


def next_turn_status(status: TurnStatus, event: TurnEvent) -> TurnStatus:
    """Return the turn's next status by the table. Raises IllegalTransition."""
    try:
        return TURN[status, event]
    except KeyError:
        raise IllegalTransition(f"a turn that is {status} cannot take {event}") from None
