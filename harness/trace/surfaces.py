"""Ids of scenarios on surfaces: `turns/plain-turn`, and `turns/plain-turn@exec`."""

from typing import Final

# The surface of a trace that names none: JSON-RPC messages.
SESSION: Final = "session"
EXEC: Final = "exec"
COMMAND: Final = "command"
SDK: Final = "sdk"
_SEPARATOR: Final = "@"


def surface_id(scenario: str, surface: str) -> str:
    """Return the id of a scenario on a surface: on `exec` `turns/plain-turn@exec`."""
    return scenario if surface == SESSION else f"{scenario}{_SEPARATOR}{surface}"


def surface_of(name: str) -> str:
    """Return the surface that an id names; the session for a race or an id without a surface."""
    suffix = name.rpartition(_SEPARATOR)[2] if _SEPARATOR in name else ""
    return suffix if suffix in (EXEC, COMMAND, SDK) else SESSION


def scenario_of(name: str) -> str:
    """Return the id without its surface: `turns/plain-turn` for `turns/plain-turn@exec`."""
    return name if surface_of(name) == SESSION else name.rpartition(_SEPARATOR)[0]
