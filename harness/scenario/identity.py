"""The id of a scenario, which is the same wherever and however its file was named."""

from functools import lru_cache
from pathlib import Path

import harness

SUFFIX = ".scenario.yaml"
FAMILY = ".family.yaml"
SUFFIXES = (SUFFIX, FAMILY)

# What marks the top of somebody's project, the surest first.
_MARKS = ((".git",), ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py"))


@lru_cache(maxsize=1)
def bundled_folder() -> Path:
    """The folder of the scenarios that ship with the harness: in the wheel, or in a checkout."""
    package = Path(harness.__file__).resolve().parent
    shipped = package / "bundled_scenarios"
    return shipped if shipped.is_dir() else package.parent / "scenarios"


def root_of(path: Path) -> Path:
    """The folder below which the id of a file is told.

    For a bundled scenario their folder; for somebody's own the repository, else the nearest folder
    with a configuration of pytest or of Python, else the current folder, else the file system.
    """
    folder = path.resolve().parent
    if folder.is_relative_to(bundled_folder()):
        return bundled_folder()
    project = _project(folder)
    if project is not None:
        return project
    here = Path.cwd().resolve()
    return here if folder.is_relative_to(here) else Path(folder.anchor)


@lru_cache(maxsize=4096)
def _project(folder: Path) -> Path | None:
    for marks in _MARKS:
        for one in (folder, *folder.parents):
            if any((one / mark).exists() for mark in marks):
                return one
    return None


def scenario_id(path: Path, root: Path | None = None) -> str:
    """The path below its root without the suffix: `turns/plain-turn`.

    The file counts, not the way to it: through a link it has the same id. Below another `root`
    than its own it has an id of that folder, or else its bare name.
    """
    real = path.resolve()
    base = root_of(real) if root is None else root.resolve()
    relative = real.relative_to(base) if real.is_relative_to(base) else Path(path.name)
    return relative.as_posix().removesuffix(SUFFIX)


def path_of_row(family: Path, name: str) -> Path:
    """Return the path that a scenario of a family would have if it had a file of its own.

    So a row has a path, and by it an id, like every other scenario.
    """
    real = family.resolve() if family.is_symlink() else family
    return real.with_name(real.name.removesuffix(FAMILY)) / f"{name}{SUFFIX}"


def row_of_path(path: Path) -> tuple[Path, str] | None:
    """The family and the name of a scenario that has no file of its own; None for any other."""
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
    """The file in which a scenario is written: its own, or that of its family."""
    row = row_of_path(path)
    return path if row is None else row[0]
