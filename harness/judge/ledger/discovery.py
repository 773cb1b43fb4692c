"""Discovery of all observers, by walking the package `observers`."""

import importlib
import pkgutil
from functools import cache

from harness.judge.ledger import observers
from harness.judge.ledger.base import Observer, registered_observers


@cache
def all_observers() -> tuple[type[Observer], ...]:
    """Return all observers, in the order of their names."""
    for module in sorted(info.name for info in pkgutil.iter_modules(observers.__path__)):
        importlib.import_module(f"{observers.__name__}.{module}")
    return tuple(
        sorted(
            registered_observers(),
            key=lambda observer: (observer.__module__, observer.__qualname__),
        )
    )
