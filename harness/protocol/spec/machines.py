"""The state machines of the protocol, as tables.

All states are defined here, as tables only: no side effects, no messages, no rule. The code that
looks up rows (judge/rules/shared/state_tracking, the diagrams in the docs) decides itself how to
treat a missing row. Events are named as an observer of the wire sees them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.protocol.spec.item_types import status_types


@dataclass(frozen=True, slots=True)
class Machine:
    """A state machine. `transitions` maps (state, event) to the next state.

    `terminal` states are never left; `states` are all states of the table.
    """

    initial: str
    transitions: Mapping[tuple[str, str], str]
    terminal: frozenset[str]
    states: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Collect every state of the table."""
        reached = {self.initial, *self.terminal, *self.transitions.values()}
        states = frozenset(reached | {state for state, _ in self.transitions})
        object.__setattr__(self, "states", states)

    def next_state(self, state: str, event: str) -> str | None:
        """Return the next state, or None if the table has no such row."""
        return self.transitions.get((state, event))

    def next_states(self, state: str) -> tuple[str, ...]:
        """Return the states to which a single event leads, in the order of the table."""
        states = (target for (source, _), target in self.transitions.items() if source == state)
        return tuple(dict.fromkeys(states))

    def terminal_next_states(self, state: str) -> tuple[str, ...]:
        """Return the terminal states to which a single event leads from this one."""
        return tuple(target for target in self.next_states(state) if target in self.terminal)

    def allowed_events(self, state: str) -> tuple[str, ...]:
        """Return the events that have a row for this state, in order."""
        return tuple(sorted(event for source, event in self.transitions if source == state))


# "Thread status". The specification names the states and two facts (a thread just started is idle;
# active means an active turn), and does not show the transitions: these follow from the meanings
# and from "Thread storage and loading", and no rule may fail a transition that is missing here.
THREAD_STATUS = Machine(
    initial="notLoaded",
    transitions={
        ("notLoaded", "thread/start"): "idle",
        ("notLoaded", "thread/resume"): "idle",
        ("notLoaded", "thread/fork"): "idle",
        ("idle", "turn begins"): "active",
        ("active", "turn completed"): "idle",
        ("active", "turn interrupted"): "idle",
        ("active", "turn failed"): "idle",
        ("idle", "system error"): "systemError",
        ("active", "system error"): "systemError",
        ("systemError", "turn begins"): "active",
        ("idle", "last subscriber leaves"): "notLoaded",
        ("active", "last subscriber leaves"): "notLoaded",
        ("systemError", "last subscriber leaves"): "notLoaded",
    },
    terminal=frozenset(),
)

# "Turn status".
TURN = Machine(
    initial="none",
    transitions={
        ("none", "turn/start"): "inProgress",
        ("inProgress", "turn/steer"): "inProgress",
        ("inProgress", "agent finishes"): "completed",
        ("inProgress", "turn/interrupt"): "interrupted",
        ("inProgress", "cancel decision"): "interrupted",
        ("inProgress", "turn error"): "failed",
    },
    terminal=frozenset({"completed", "interrupted", "failed"}),
)

# "Item lifecycle".
ITEM = Machine(
    initial="none",
    transitions={
        ("none", "item/started"): "started",
        ("started", "delta"): "started",
        ("started", "item/completed"): "completed",
    },
    terminal=frozenset({"completed"}),
)

# "Item lifecycle": the status values of items whose type has a status. Only item/started and
# item/completed show a status, no message in between.
_TOOL_CALL = {
    ("none", "work begins"): "inProgress",
    ("inProgress", "work is done"): "completed",
    ("inProgress", "work fails"): "failed",
}
TOOL_CALL_STATUS = Machine("none", _TOOL_CALL, frozenset({"completed", "failed"}))
CHANGE_STATUS = Machine(
    initial="none",
    transitions={**_TOOL_CALL, ("inProgress", "client declines"): "declined"},
    terminal=frozenset({"completed", "failed", "declined"}),
)

# Item type -> the machine of its status, by the name of the enumeration in its schema. A type that
# is missing here has no status.
_MACHINE_OF = {"DeclinableStatus": CHANGE_STATUS, "ToolStatus": TOOL_CALL_STATUS}
ITEM_STATUS: Mapping[str, Machine] = {
    item_type: _MACHINE_OF[words] for item_type, words in status_types().items()
}

# "Thread storage and loading".
STORAGE = Machine(
    initial="not archived",
    transitions={
        ("not archived", "thread/archive"): "archived",
        ("archived", "thread/unarchive"): "not archived",
    },
    terminal=frozenset(),
)

# "Approval sequence". An item that needs no approval does not enter this machine.
APPROVAL = Machine(
    initial="item started",
    transitions={
        ("item started", "server request"): "asked",
        ("asked", "client answer"): "answered",
        ("answered", "serverRequest/resolved"): "resolved",
        ("resolved", "item/completed"): "completed",
    },
    terminal=frozenset({"completed"}),
)

MACHINES: Mapping[str, Machine] = {
    "thread-status": THREAD_STATUS,
    "turn": TURN,
    "item": ITEM,
    "change-status": CHANGE_STATUS,
    "tool-call-status": TOOL_CALL_STATUS,
    "storage": STORAGE,
    "approval": APPROVAL,
}

# Changes of one machine that drive another: (machine, new state) -> (other machine, its event).
COUPLINGS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("turn", "inProgress"): ("thread-status", "turn begins"),
    ("turn", "completed"): ("thread-status", "turn completed"),
    ("turn", "interrupted"): ("thread-status", "turn interrupted"),
    ("turn", "failed"): ("thread-status", "turn failed"),
}

# Invariants between two machines: (machine, state) -> (other machine, states it may be in).
INVARIANTS: Mapping[tuple[str, str], tuple[str, frozenset[str]]] = {
    ("thread-status", "active"): ("turn", frozenset({"inProgress"})),
    ("thread-status", "idle"): ("turn", frozenset({"none"}) | TURN.terminal),
}
