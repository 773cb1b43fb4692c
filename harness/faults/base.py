"""The form of a fault, and the collection of all faults."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import cast

from harness.faults.queue import Change
from harness.faults.site import FaultSite, NotApplied
from harness.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the whole conversation, without which no rule can notice a fault.

    It is checked on the frames of one connection of a stored trace, without the fault. It does not
    apply to a live stream, whose future is unknown.
    """

    description: str
    holds: Callable[[Trace], bool]


@dataclass(frozen=True, slots=True)
class StoredOnly:
    """A change that needs a whole stored trace; `reason` says why a stream does not suffice.

    `apply` gets the site at the end of one connection and the trace, and returns a changed copy. It
    raises `NotApplied` if it finds no place.
    """

    reason: str
    apply: Callable[[FaultSite, Trace], Trace]


@dataclass(frozen=True, slots=True)
class Fault:
    """One error of a server, of a client, or of the harness.

    `reason` says why the output is illegal (or, for an INFO rule, worth recording), `rule` is the
    rule that must notice it, `on` the stored good trace on which a test shows that it does.
    """

    id: str
    rule: str
    on: str
    reason: str
    change: Change | StoredOnly
    condition: Condition | None = None


def all_faults() -> dict[str, Fault]:
    """Return the faults in `FAULTS` of each module of `harness.faults.tables`, sorted by id."""
    return dict(_all_faults())


@cache
def _all_faults() -> dict[str, Fault]:
    package = importlib.import_module("harness.faults.tables")
    tables = [
        importlib.import_module(f"harness.faults.tables.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    listed = [fault for table in tables for fault in cast("tuple[Fault, ...]", table.FAULTS)]
    return dict(sorted(faults_by_id(listed).items()))


def faults_by_id(faults: Iterable[Fault]) -> dict[str, Fault]:
    """Return faults by their ids. Raises `ValueError` for a duplicate id."""
    found_faults: dict[str, Fault] = {}
    for fault in faults:
        if fault.id in found_faults:
            raise ValueError(f"fault id {fault.id!r} is taken")
        found_faults[fault.id] = fault
    return found_faults


__all__ = ["Condition", "Fault", "NotApplied", "StoredOnly", "all_faults", "faults_by_id"]
