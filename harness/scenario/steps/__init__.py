"""Players of the client's steps: a module per family, found by walking.

`client_steps` defines the steps; the player calls these functions.
"""

import importlib
import pkgutil
from functools import cache

from harness.scenario.steps.context import Play, registered_players


@cache
def plays_by_step() -> dict[type, Play]:
    """Return the function that plays each class of step."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return registered_players()
