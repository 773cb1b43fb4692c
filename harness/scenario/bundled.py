"""The scenarios that ship with the harness, as a whole."""

import re
from functools import cache, lru_cache
from pathlib import Path

from harness.scenario.identity import bundled_folder, file_of, scenario_id
from harness.scenario.loader import Loaded, find_scenarios, load
from harness.trace.surfaces import SESSION, surface_id

__all__ = [
    "bundled_files",
    "bundled_folder",
    "bundled_ids",
    "bundled_ids_on",
    "bundled_scenario",
    "listed_surfaces",
]


_SURFACES = re.compile(r"^ *surfaces: *\[([^]]*)\]", re.MULTILINE)


@lru_cache(maxsize=1)
def bundled_files() -> dict[str, Path]:
    """Return the file of each bundled scenario by its id, in order."""
    root = bundled_folder()
    return {scenario_id(file, root): file for _, file in find_scenarios([root])}


def bundled_ids() -> set[str]:
    """Return the ids of the bundled scenarios, by their files' names alone."""
    return set(bundled_files())


@cache
def bundled_ids_on(surface: str) -> frozenset[str]:
    """Return the ids of the bundled scenarios that are played on this surface.

    They are ids on that surface: `turns/plain-turn@exec`. Only the text of the files is read.
    """
    files = {file_of(path) for path in bundled_files().values()}
    files_on_surface = {file for file in files if surface in listed_surfaces(file)}
    return frozenset(
        surface_id(name, surface)
        for name, path in bundled_files().items()
        if file_of(path) in files_on_surface
    )


def listed_surfaces(file: Path) -> list[str]:
    """Return the surfaces that a scenario's file lists, by a look at its text."""
    listed = _SURFACES.search(file.read_text("utf-8"))
    return [SESSION] if listed is None else [surface.strip() for surface in listed[1].split(",")]


@cache
def bundled_scenario(name: str) -> Loaded:
    """Return the bundled scenario of an id, loaded once in a process: do not change it.

    Raises `KeyError` for an unknown id.
    """
    return load(bundled_files()[name], root=bundled_folder())
