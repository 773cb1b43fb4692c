"""Deviations about scenarios that do not exist: an entry that can never fit is refused.

Here: whether a glob speaks of any scenario: a bundled one, one of a race, one of the files that
were given, or one that lies beside them on the disk, since a run may play a part of what a baseline
is about. Not here: matching findings with entries (baseline).
"""

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.scenario.bundled import bundled_folder, bundled_ids
from harness.scenario.loader import SUFFIX, load, scenario_id
from harness.scenario.model import ACTIONS, Action
from harness.scenario.races import placements
from harness.target.profile import ProfileError
from harness.target.tomltext import Where
from harness.trace.nearest import unknown

# What harness fuzz plays goes by this name.
FUZZ = "fuzz"


@dataclass(frozen=True, slots=True)
class Spoken:
    """The glob of an entry, and where it stands."""

    glob: str
    where: Where


def check_globs(spoken: Sequence[Spoken], given: Iterable[Path]) -> None:
    """Raises `ProfileError` for an entry about no scenario that exists.

    `given` are the files and folders that the run was given.
    """
    wanted = [one for one in spoken if not _matches_any(one.glob, _bundled())]
    if not wanted:
        return
    paths = list(given)
    theirs = {name for path in paths for name in _names(path)}
    for one in wanted:
        if not _matches_any(one.glob, theirs) and not _beside(one.glob, paths):
            near = unknown("scenario", one.glob, {*_bundled(), *theirs, *_folders(_bundled())})
            raise ProfileError(f"{one.where}: scenario: {near}")


def _bundled() -> set[str]:
    return {*bundled_ids(), FUZZ}


def _folders(names: Iterable[str]) -> set[str]:
    return {f"{name.rpartition('/')[0]}/*" for name in names if "/" in name}


def _matches_any(glob: str, names: Iterable[str]) -> bool:
    """Whether a glob fits a scenario, or a race or a placement of one."""
    name, _, rest = glob.partition("@")
    action, _, position = rest.partition("@")
    for one in names:
        if fnmatch.fnmatchcase(one, glob):
            return True
        if not rest and any(fnmatch.fnmatchcase(f"{one}@{action}", glob) for action in ACTIONS):
            return True
        if rest and fnmatch.fnmatchcase(one, name) and _is_raced(one, action, position):
            return True
    return False


def _is_raced(scenario: str, action: str, position: str) -> bool:
    """Whether an action that the glob fits is raced, and has a position that it fits."""
    actions: list[Action] = [one for one in ACTIONS if fnmatch.fnmatchcase(one, action)]
    file = bundled_folder() / f"{scenario}{SUFFIX}"
    if not actions or not file.is_file():
        return bool(actions)
    loaded = load(file)
    actions = [one for one in actions if one in loaded.scenario.raced]
    if not position:
        return bool(actions)
    return any(
        fnmatch.fnmatchcase(one.position.name, position)
        for action in actions
        for one in placements(loaded.scenario, action)
    )


def _names(path: Path) -> Iterator[str]:
    """The scenarios below a folder, or beside a file: each by every name that a run may give it."""
    files = path.rglob(f"*{SUFFIX}") if path.is_dir() else path.parent.glob(f"*{SUFFIX}")
    for file in files:
        parts = Path(scenario_id(file.resolve(), Path(file.anchor))).parts
        yield from ("/".join(parts[index:]) for index in range(1, len(parts)))


def _beside(glob: str, given: Sequence[Path]) -> bool:
    """Whether a glob fits a scenario in a folder that it names, which lies near what was given."""
    head = glob.partition("/")[0]
    if "/" not in glob or any(sign in head for sign in "*?["):
        return False
    here = Path.cwd()
    near = {one for path in given for one in (path, path.parent, *path.resolve().parents)}
    folders = [one / head for one in near if one in given or one.is_relative_to(here)]
    return any(_matches_any(glob, _names(folder)) for folder in folders if folder.is_dir())
