"""The surfaces there are, by name: whoever adds one adds it here."""

from typing import Any, Final

from harness.surface.base import Surface
from harness.surface.command import Command
from harness.surface.exec import Exec
from harness.surface.sdk import Sdk
from harness.surface.session import Session
from harness.trace.frame import Classify

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
