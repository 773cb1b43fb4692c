"""The broken servers by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HUNTED = ("turns", "threads")
# Not each of these is found within a minute yet (ADR 42).
FURTHER = ("further",)
SEQUENCES = Path(__file__).with_name("sequences")


@dataclass(frozen=True)
class Broken:
    """One broken server; `what` describes its bug, `tells` is the MUST rule that finds it."""

    name: str
    what: str
    plant: Callable[[], None]
    tells: str

    @property
    def sequence(self) -> Path:
        """Return the path of the scenario that shows the bug."""
        return SEQUENCES / f"{self.name}.scenario.yaml"


_found: dict[str, Broken] = {}


def broken(*, tells: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function that plants a bug; its name, with dashes, is that of the server."""

    def register(plant: Callable[[], None]) -> Callable[[], None]:
        name = plant.__name__.replace("_", "-")
        if name in _found:
            raise ValueError(f"there are two broken servers of the name {name}")
        _found[name] = Broken(name, plant.__doc__ or "", plant, tells)
        return plant

    return register


def every(modules: Sequence[str] = (*HUNTED, *FURTHER)) -> dict[str, Broken]:
    """Return the broken servers of some modules, by default all, by name."""
    names = [f"{__package__}.{module}" for module in modules]
    for name in names:
        importlib.import_module(name)
    return {name: one for name, one in _found.items() if one.plant.__module__ in names}
