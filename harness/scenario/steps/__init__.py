"""Functions that play the client's steps: a module per group of steps, found by walking."""

import importlib
import pkgutil
from functools import cache

from harness.scenario.steps.context import Play, registered_players


@cache
def plays_by_step() -> dict[type, Play]:
    """Return the function that plays a step, keyed by the step's class."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return registered_players()
