"""The scenarios that ship with the harness, as a whole."""

import re
from collections.abc import Iterator
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
    "bundled_with",
    "listed_surfaces",
]


_SURFACES = re.compile(r"^ *surfaces: *\[([^]]*)\]", re.MULTILINE)


@lru_cache(maxsize=1)
def bundled_files() -> dict[str, Path]:
    """Return the file of each bundled scenario, keyed by scenario id."""
    root = bundled_folder()
    return {scenario_id(file, root): file for _, file in find_scenarios([root])}


def bundled_ids() -> set[str]:
    """Return the ids of the bundled scenarios, by their files' names alone."""
    return set(bundled_files())


@cache
def bundled_ids_on(surface: str) -> frozenset[str]:
    """Return ids such as `turns/plain-turn@exec` of the bundled scenarios played on `surface`.

    Surfaces are found in the text of the files, without parsing.
    """
    files = set(_file_of_ids().values())
    files_on_surface = {file for file in files if surface in listed_surfaces(file)}
    return frozenset(
        surface_id(name, surface)
        for name, file in _file_of_ids().items()
        if file in files_on_surface
    )


def bundled_with(word: str) -> Iterator[str]:
    """Yield the ids of the bundled scenarios whose file has this word, without parsing."""
    has_word = {file: word in text for file, text in _bundled_texts().items()}
    for name, file in _file_of_ids().items():
        if has_word[file]:
            yield name


@cache
def _file_of_ids() -> dict[str, Path]:
    """Return the file that holds each bundled scenario, its own or its family's, by id."""
    return {name: file_of(path) for name, path in bundled_files().items()}


@cache
def _bundled_texts() -> dict[Path, str]:
    """Return the text of each file of bundled scenarios."""
    return {file: file.read_text("utf-8") for file in dict.fromkeys(_file_of_ids().values())}


def listed_surfaces(file: Path) -> list[str]:
    """Return the surfaces that a scenario's text lists, without parsing; `[SESSION]` by default."""
    listed = _SURFACES.search(file.read_text("utf-8"))
    return [SESSION] if listed is None else [surface.strip() for surface in listed[1].split(",")]


@cache
def bundled_scenario(name: str) -> Loaded:
    """Return the bundled scenario with this id; cached for the process, so do not change it.

    Raises `KeyError` for an unknown id.
    """
    return load(bundled_files()[name], root=bundled_folder())
