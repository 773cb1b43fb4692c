"""What a fault is, and how faults are found.

Here: `Fault`, its registry, and the exception of a fault that finds no place. Not here: the
operators (operators), the places (scene), any fault (tables), and running them (mutation).
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from harness.faults.scene import NotApplied, Scene
from harness.trace.trace import Trace

Trip = Callable[[Scene], Trace]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a server, or we, can be wrong.

    `reason` says why its output is illegal (or, for an INFO rule, worth recording), `rule` is the
    rule that must notice, `on` the stored good trace it is proved on.
    """

    id: str
    reason: str
    rule: str
    on: str
    make: Trip

    def trips(self, trace: Trace) -> Trace:
        """The trace with the fault in it; raises `NotApplied` where its pattern does not occur."""
        return self.make(Scene(trace))


_FAULTS: dict[str, Fault] = {}


def fault(fault_id: str, *, rule: str, on: str, reason: str) -> Callable[[Trip], Trip]:
    """Register a function over a scene as a fault. A duplicate id raises."""

    def register(make: Trip) -> Trip:
        if fault_id in _FAULTS:
            raise ValueError(f"fault id {fault_id!r} is taken")
        _FAULTS[fault_id] = Fault(fault_id, reason, rule, on, make)
        return make

    return register


def all_faults() -> dict[str, Fault]:
    """Every fault by id, sorted; found by walking the package `harness.faults.tables`."""
    package = importlib.import_module("harness.faults.tables")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"harness.faults.tables.{module.name}")
    return dict(sorted(_FAULTS.items()))


__all__ = ["Fault", "NotApplied", "all_faults", "fault"]
