"""The judge's state machines as Mermaid diagrams."""

import re
from collections.abc import Iterator

from harness.protocol.spec.machines import COUPLINGS, INVARIANTS, ITEM_STATUS, MACHINES, Machine


def state_diagram(machine: Machine) -> Iterator[str]:
    """Yield the lines of a Mermaid state diagram; events between the same states share an arrow."""
    yield "stateDiagram-v2"
    for state in sorted(machine.states):
        if _id(state) != state:
            yield f'    state "{state}" as {_id(state)}'
    yield f"    [*] --> {_id(machine.initial)}"
    arrows: dict[tuple[str, str], list[str]] = {}
    for (state, event), after in machine.transitions.items():
        arrows.setdefault((state, after), []).append(event)
    for (state, after), events in arrows.items():
        yield f"    {_id(state)} --> {_id(after)}: {', '.join(events)}"
    for state in sorted(machine.terminal):
        yield f"    {_id(state)} --> [*]"


def machine_pages() -> Iterator[str]:
    """Yield docs/state-machines.md: diagrams, couplings, invariants, and statuses of items."""
    for name, machine in MACHINES.items():
        yield f"## {name}"
        yield ""
        yield "```mermaid"
        yield from state_diagram(machine)
        yield "```"
        yield ""
    yield "## Couplings"
    yield ""
    yield "| when this machine | comes to | then this one | sees |"
    yield "|---|---|---|---|"
    for (name, state), (other, event) in COUPLINGS.items():
        yield f"| {name} | {state} | {other} | {event} |"
    yield ""
    yield "## Invariants"
    yield ""
    yield "| while this machine | is | this one | is one of |"
    yield "|---|---|---|---|"
    for (name, state), (other, states) in INVARIANTS.items():
        yield f"| {name} | {state} | {other} | {', '.join(sorted(states))} |"
    yield ""
    yield "## Status of an item by its type"
    yield ""
    yield "Other types have no status."
    yield ""
    yield "| type | machine | ends as |"
    yield "|---|---|---|"
    for item_type, machine in ITEM_STATUS.items():
        name = next(name for name, known in MACHINES.items() if known is machine)
        yield f"| {item_type} | {name} | {', '.join(sorted(machine.terminal))} |"


def _id(state: str) -> str:
    """Return the name of a state as a valid Mermaid id."""
    return re.sub(r"\W", "_", state)
