"""Players of the client's steps: a module per family, found by walking.

What a step may hold is `client_steps`; who calls these functions is the player.
"""

import importlib
import pkgutil
from functools import cache

from harness.scenario.steps.context import Play, registered


@cache
def plays_by_step() -> dict[type, Play]:
    """The function that plays each class of step."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return registered()
