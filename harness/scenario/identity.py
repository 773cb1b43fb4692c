"""Ids of scenarios, independent of the path by which a file was reached."""

from functools import lru_cache
from pathlib import Path

import harness

SUFFIX = ".scenario.yaml"
FAMILY = ".family.yaml"
SUFFIXES = (SUFFIX, FAMILY)

# Files that mark the root of a user's project, the most reliable ones first.
_MARKS = ((".git",), ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py"))


@lru_cache(maxsize=1)
def bundled_folder() -> Path:
    """Return the folder of the bundled scenarios, in the wheel or in a checkout."""
    package = Path(harness.__file__).resolve().parent
    shipped = package / "bundled_scenarios"
    return shipped if shipped.is_dir() else package.parent / "scenarios"


DEFAULT_ID = "default"
"""The id of the scenario whose model needs no script, for clients under test."""


def default_scenario() -> Path:
    """Return the file of the scenario with `DEFAULT_ID`; no run plays it to a server."""
    return Path(__file__).with_name(f"{DEFAULT_ID}{SUFFIX}")


def is_bundled(path: Path) -> bool:
    """Return whether a path is that of a bundled scenario or family."""
    return path.resolve().is_relative_to(bundled_folder())


def root_of(path: Path) -> Path:
    """Return the folder that a file's id is relative to.

    For a bundled scenario this is the folder of all; for a user's own it is the repository, else
    the nearest folder with a configuration of pytest or of Python, else the current folder, else
    the root.
    """
    folder = path.resolve().parent
    if is_bundled(path):
        return bundled_folder()
    if path.resolve() == default_scenario().resolve():
        return folder
    project = _project_folder(folder)
    if project is not None:
        return project
    current = Path.cwd().resolve()
    return current if folder.is_relative_to(current) else Path(folder.anchor)


@lru_cache(maxsize=4096)
def _project_folder(folder: Path) -> Path | None:
    for marks in _MARKS:
        for parent in (folder, *folder.parents):
            if any((parent / mark).exists() for mark in marks):
                return parent
    return None


def scenario_id(path: Path, root: Path | None = None) -> str:
    """Return the id: the path below its root without the suffix, `turns/plain-turn`.

    Links are resolved, so each path to a file gives one id. With `root` the id is relative to that
    folder; for a file outside of it, the bare name.
    """
    real = path.resolve()
    base = root_of(real) if root is None else root.resolve()
    relative = real.relative_to(base) if real.is_relative_to(base) else Path(path.name)
    return relative.as_posix().removesuffix(SUFFIX)


def path_of_row(family: Path, name: str) -> Path:
    """Return the path that a scenario of a family would have if it had its own file.

    Its id follows from this path, as for every other scenario.
    """
    real = family.resolve() if family.is_symlink() else family
    return real.with_name(real.name.removesuffix(FAMILY)) / f"{name}{SUFFIX}"


def row_of_path(path: Path) -> tuple[Path, str] | None:
    """Return the family file and the row's name for such a path; None for any other."""
    if not path.name.endswith(SUFFIX) or path.is_file():
        return None
    folder, name = path.parent, path.name.removesuffix(SUFFIX)
    for _ in range(2):  # A row, and a column of it.
        family = folder.with_name(f"{folder.name}{FAMILY}") if folder.name else folder
        if family.is_file():
            return family, name
        folder, name = folder.parent, f"{folder.name}/{name}"
    return None


def file_of(path: Path) -> Path:
    """Return the file that holds a scenario: its own, or its family's."""
    row = row_of_path(path)
    return path if row is None else row[0]
