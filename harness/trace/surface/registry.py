"""The registry of surfaces by name."""

from typing import Any, Final

from harness.trace.frame import Classify
from harness.trace.surface.agent_exec import Exec
from harness.trace.surface.agent_mcp import Command
from harness.trace.surface.base import Surface
from harness.trace.surface.sdk import Sdk
from harness.trace.surface.session import Session

SURFACES: Final[dict[str, Surface[Any, Any]]] = {
    surface.name: surface for surface in (Session(), Exec(), Command(), Sdk())
}


def surface_named(name: str) -> Surface[Any, Any]:
    """Return the surface of that name. Raises `ValueError` for an unknown one."""
    try:
        return SURFACES[name]
    except KeyError:
        raise ValueError(f"no surface {name!r}; there are {', '.join(SURFACES)}") from None


def classify_of(name: str) -> Classify:
    """Return the classifier of that surface's lines. Raises `ValueError` for an unknown one."""
    return surface_named(name).classify
