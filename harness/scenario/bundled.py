"""The scenarios that ship with the harness, as a whole."""

from functools import cache, lru_cache
from pathlib import Path

from harness.scenario.identity import bundled_folder, scenario_id
from harness.scenario.loader import Loaded, find, load

__all__ = ["bundled_files", "bundled_folder", "bundled_ids", "bundled_scenario"]


@lru_cache(maxsize=1)
def bundled_files() -> dict[str, Path]:
    """The file of each bundled scenario by its id, in order."""
    root = bundled_folder()
    return {scenario_id(file, root): file for _, file in find([root])}


def bundled_ids() -> set[str]:
    """The ids of the bundled scenarios, by their files' names alone."""
    return set(bundled_files())


@cache
def bundled_scenario(name: str) -> Loaded:
    """The bundled scenario of an id, loaded once in a process: nobody may change it.

    Raises `KeyError` for an unknown id.
    """
    return load(bundled_files()[name], root=bundled_folder())
