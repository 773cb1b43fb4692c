"""The user's own scenarios on disk, whether or not a run plays them.

A baseline entry may be about scenarios that a run leaves out. So the scenarios that a run collected
do not tell whether the entry matches any, or whether all of its scenarios ran.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.scenario.bundled import bundled_folder
from harness.scenario.families import scenario_paths_in
from harness.scenario.identity import (
    SUFFIX,
    SUFFIXES,
    file_of,
    root_of,
    row_of_path,
    scenario_id,
)

_WILD = frozenset("*?[")
# Users keep no scenarios there, and such folders are large.
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})


@dataclass(frozen=True, slots=True)
class UserScenarios:
    """The scenarios of the projects of a run. Make it with `user_scenarios_of`.

    `roots` are the folders to which ids are relative, `folders` those that the run was given.
    """

    roots: tuple[Path, ...]
    folders: tuple[Path, ...]

    def ids_in(self, glob: str) -> set[str]:
        """Return the ids in the folder of a glob (`my/*`), or in the run's folders (`*`)."""
        head = _head(glob)
        folders = [_folder_on_disk(root / head) for root in self.roots] if head else self.folders
        return _ids(folders)

    def all_ids(self) -> set[str]:
        """Return all ids of the projects; without a project, those in the folders of the run."""
        return _ids([*(root for root in self.roots if not _is_top(root)), *self.folders])


def user_scenarios_of(paths: Iterable[Path]) -> UserScenarios:
    """Return the scenarios of the projects of these files and folders."""
    bundled = bundled_folder()
    roots: dict[Path, None] = {root_of(Path.cwd() / "any"): None}
    folders: dict[Path, None] = {}
    for path in paths:
        is_folder = path.is_dir()
        if not (is_folder or path.name.endswith(SUFFIXES)):
            continue
        real = (path if is_folder else file_of(path).parent).resolve()
        if real.is_relative_to(bundled):
            continue
        root = root_of(real / "any")
        roots[root] = None
        # The first folder below the project's holds scenarios of one kind.
        first = real.relative_to(root).parts[:1]
        folders[real if is_folder or _is_top(root) else root.joinpath(*first)] = None
    roots.pop(bundled, None)
    return UserScenarios(tuple(roots), tuple(folders))


def _head(glob: str) -> str:
    """Return the leading folders of a glob, up to the first with a wildcard."""
    folders: list[str] = []
    for part in glob.split("/")[:-1]:
        if not _WILD.isdisjoint(part) or part in ("", ".", ".."):
            break
        folders.append(part)
    return "/".join(folders)


def _folder_on_disk(folder: Path) -> Path:
    """Return the folder on disk; for the rows of a family, the folder of the family's file."""
    row = row_of_path(folder / f"any{SUFFIX}")
    return folder if row is None else row[0].parent


def _is_top(folder: Path) -> bool:
    """Return whether it is the root of the file system, which is never searched."""
    return folder == Path(folder.anchor)


def _ids(folders: Iterable[Path]) -> set[str]:
    bundled = bundled_folder()
    files = {file for folder in folders for file in _files(folder)}
    own = [file for file in files if not file.is_relative_to(bundled)]
    return {scenario_id(path) for file in own for path in scenario_paths_in(file)}


def _files(folder: Path) -> Iterator[Path]:
    for parent, below, names in os.walk(folder):
        below[:] = [
            name for name in below if not name.startswith(".") and name not in _SKIPPED_FOLDERS
        ]
        yield from (Path(parent, name).resolve() for name in names if name.endswith(SUFFIXES))
