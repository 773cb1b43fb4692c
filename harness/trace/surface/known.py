"""The surfaces there are, by name: whoever adds one adds it here."""

from typing import Any, Final

from harness.trace.frame import Classify
from harness.trace.surface.agent_exec import Exec
from harness.trace.surface.agent_mcp import Command
from harness.trace.surface.base import Surface
from harness.trace.surface.sdk import Sdk
from harness.trace.surface.session import Session

SURFACES: Final[dict[str, Surface[Any, Any]]] = {
    one.name: one for one in (Session(), Exec(), Command(), Sdk())
}


def surface_named(name: str) -> Surface[Any, Any]:
    """The surface of that name. Raises `ValueError` for an unknown one."""
    try:
        return SURFACES[name]
    except KeyError:
        raise ValueError(f"no surface {name!r}; there are {', '.join(SURFACES)}") from None


def classify_of(name: str) -> Classify:
    """Return how that surface classifies lines. Raises `ValueError` for an unknown one."""
    return surface_named(name).classify
