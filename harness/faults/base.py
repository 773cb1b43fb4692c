"""The form of a fault, and finding all faults."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from harness.faults.queue import Change
from harness.faults.site import FaultSite, NotApplied
from harness.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Given:
    """A condition on the conversation for a rule to notice a fault in it; `what` names it.

    It is asked of a stored trace, with the frames of one connection, before the fault is applied. A
    live stream cannot be asked what is still to come.
    """

    what: str
    holds: Callable[[Trace], bool]


@dataclass(frozen=True, slots=True)
class StoredOnly:
    """A change that needs a whole stored trace; `why` says what a stream cannot give it.

    `make` gets the site at the end of one connection, and the trace to change.
    """

    why: str
    make: Callable[[FaultSite, Trace], Trace]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a server, or we, can be wrong.

    `reason` says why the output is illegal (or, for an INFO rule, worth recording), `rule` is the
    rule that must notice, `on` the stored good trace it is proved on.
    """

    id: str
    rule: str
    on: str
    reason: str
    change: Change | StoredOnly
    given: Given | None = None


def all_faults() -> dict[str, Fault]:
    """Every fault by id, sorted: those in `FAULTS` of each module of `harness.faults.tables`."""
    package = importlib.import_module("harness.faults.tables")
    tables = [
        importlib.import_module(f"harness.faults.tables.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    listed = [fault for table in tables for fault in cast("tuple[Fault, ...]", table.FAULTS)]
    return dict(sorted(by_id(listed).items()))


def by_id(faults: Iterable[Fault]) -> dict[str, Fault]:
    """Faults by their ids. A duplicate id raises."""
    found: dict[str, Fault] = {}
    for fault in faults:
        if fault.id in found:
            raise ValueError(f"fault id {fault.id!r} is taken")
        found[fault.id] = fault
    return found


__all__ = ["Fault", "Given", "NotApplied", "StoredOnly", "all_faults", "by_id"]
