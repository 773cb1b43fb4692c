"""What a scenario is called on a surface: `turns/plain-turn`, and `turns/plain-turn@exec`.

Here: the names of the two surfaces on which scenarios are played, and the ids. Not here: what a
surface is (harness.surface), which steps can be played on one (scenario.surfaces).
"""

from typing import Final

from harness.trace.trace import SESSION

EXEC: Final = "exec"
_SEPARATOR: Final = "@"


def surface_id(scenario: str, surface: str) -> str:
    """What a scenario is called on a surface: on `exec` `turns/plain-turn@exec`."""
    return scenario if surface == SESSION else f"{scenario}{_SEPARATOR}{surface}"


def surface_of(name: str) -> str:
    """The surface that an id names; that of a race is the session."""
    return EXEC if name.endswith(f"{_SEPARATOR}{EXEC}") else SESSION
