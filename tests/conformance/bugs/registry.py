"""Bugs by name, with the scenarios that must fail on each."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.conformance.bugs import tables

Server = Literal["reference", "keeper"]


@dataclass(frozen=True)
class Bug:
    """A planted bug. `reds` maps the id of a scenario to the finding that shows the bug.

    A search with sequences shows it by the rule `sequences`, if that is given.
    `server` is the server to plant it in: `reference`, or `keeper` (fixtures/servers), a small one
    with stored threads and several clients.
    """

    name: str
    what: str
    plant: Callable[[], None]
    reds: Mapping[str, str]
    server: Server
    sequences: str


_found: dict[str, Bug] = {}


def bug(
    *, reds: Mapping[str, str] | None = None, server: Server = "reference", sequences: str = ""
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function that plants a bug; its name and docstring are those of the bug."""

    def register(plant: Callable[[], None]) -> Callable[[], None]:
        name = plant.__name__.replace("_", "-")
        if name in _found:
            raise ValueError(f"there are two bugs of the name {name}")
        if not plant.__doc__ or not (reds or sequences):
            raise ValueError(f"the bug {name} must say what it is, and what it turns red")
        _found[name] = Bug(name, plant.__doc__, plant, dict(reds or {}), server, sequences)
        return plant

    return register


def every() -> dict[str, Bug]:
    """Return all bugs, by name."""
    for module in pkgutil.iter_modules(tables.__path__):
        importlib.import_module(f"{tables.__name__}.{module.name}")
    return _found


def find(name: str) -> Bug:
    """Return one bug. Only its table is imported: the tables import half of the server."""
    if name in _found:
        return _found[name]
    head = f"def {name.replace('-', '_')}("
    for source in Path(tables.__path__[0]).glob("*.py"):
        if head in source.read_text(encoding="utf-8"):
            importlib.import_module(f"{tables.__name__}.{source.stem}")
    return _found[name]
