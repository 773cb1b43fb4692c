"""Names of scenarios as a user may write them: a path, an id as reports print it, a pattern.

An existing file or folder wins over an id.
"""

import fnmatch
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.scenario.bundled import bundled_files
from harness.scenario.explain import unknown_name
from harness.scenario.families import is_row, scenario_paths_in
from harness.scenario.identity import (
    DEFAULT_ID,
    FAMILY,
    SUFFIX,
    SUFFIXES,
    default_scenario,
    root_of,
    scenario_id,
)
from harness.scenario.loader import describe_empty_folders, find_scenarios
from harness.scenario.model import ACTIONS, Action
from harness.scenario.race_id import RaceId
from harness.trace.nearest import did_you_mean, similar_names

LIST_COMMAND = "harness scenario list"
"""The command that lists the bundled scenarios."""
BUNDLED_WORD = "bundled"
"""The word for all scenarios that ship with the harness."""

# The scenarios beside an unknown path that a message names.
_MAX_NEIGHBOURS = 5

_ACTIONS: dict[str, Action] = {action: action for action in ACTIONS}


@dataclass(frozen=True, slots=True)
class NamedScenarios:
    """The scenarios that a word names; for a race, its action and its position or ""."""

    files: tuple[Path, ...]
    action: Action | None = None
    position: str = ""


def is_path(word: str) -> bool:
    """Return whether a word names an existing file or folder, or a test within a file."""
    path = Path(word.split("::", 1)[0])
    try:
        return path.exists()
    except OSError:
        return False


def scenarios_by_name(word: str) -> NamedScenarios:
    """Return the scenarios that a word names.

    It is an id, a folder of ids (`turns/`), a pattern (`turns/*`) or a race
    (`turns/plain-turn@interrupt@delta:2`). Raises `UsageError` for an unknown name, and for a race
    in several scenarios.
    """
    race = RaceId.parse(strip_relative_prefix(word))
    name, action = race.scenario, _ACTIONS.get(race.action)
    if race.name and action is None:
        raise UsageError(f"{word}: {unknown_name('action', race.action, ACTIONS)}")
    files = _find_files(name, word)
    if not files:
        raise UsageError(_describe_unknown_name(word, name))
    if race.name and len(files) > 1:
        raise UsageError(f"{word}: a race is of one scenario, and {name} names {len(files)}")
    return NamedScenarios(tuple(files), action, race.position)


def named_files(words: Sequence[str]) -> list[Path]:
    """Return the files that the words name, without duplicates.

    Raises `UsageError` for an unknown name, a file with another suffix, and a folder without a
    scenario.
    """
    files: dict[Path, Path] = {}
    for word in words:
        for file in _files_of_path(word) if is_path(word) else scenarios_by_name(word).files:
            files.setdefault(file.resolve(), file)
    return list(files.values())


def wrong_suffix(path: Path) -> str:
    """Return a message for an existing file without a scenario's suffix, else ""."""
    if not path.is_file() or path.name.endswith(SUFFIXES):
        return ""
    stem = path.name.removesuffix(path.suffix).removesuffix(".scenario")
    return f"{path}: the name of a scenario file ends in {SUFFIX}; rename it to {stem}{SUFFIX}"


def _files_of_path(word: str) -> list[Path]:
    path = Path(word.split("::", 1)[0])
    problem = wrong_suffix(path) or "".join(describe_empty_folders([path]))
    if problem:
        raise UsageError(problem)
    return [file for _, file in find_scenarios([path])]


def strip_relative_prefix(word: str) -> str:
    """Return a word without leading `./` and `../`: pytest adds them in other folders."""
    while word.startswith(("./", "../")):
        word = word.split("/", 1)[1]
    return word


def _find_files(name: str, word: str) -> list[Path]:
    bundled = bundled_files()
    name = name.removesuffix(SUFFIX).removesuffix(FAMILY).rstrip("/")
    if name == BUNDLED_WORD:
        return list(bundled.values())
    if any(mark in name for mark in "*?["):
        matches = [file for id_, file in bundled.items() if fnmatch.fnmatchcase(id_, name)]
        return matches or _own_scenarios(name)
    relative_name = (
        RaceId.parse(word).scenario.removesuffix(SUFFIX).removesuffix(FAMILY).rstrip("/")
    )
    candidates = [Path(f"{relative_name}{SUFFIX}"), _root_of_ids() / (name + SUFFIX)]
    for file in candidates:
        if file.is_file() or is_row(file):
            return [file]
    if name in bundled:
        return [bundled[name]]
    if name == DEFAULT_ID:
        return [default_scenario()]
    folder, family = _root_of_ids() / name, _root_of_ids() / (name + FAMILY)
    paths = [path for path in (family, folder) if name and path.exists()]
    if paths:
        return [file for _, file in find_scenarios(paths)]
    return [file for id_, file in bundled.items() if name and id_.startswith(f"{name}/")]


def _own_scenarios(pattern: str) -> list[Path]:
    """Return the user's own scenarios that match a pattern, as files or rows of families."""
    if pattern.startswith("/"):
        return []
    folders = dict.fromkeys((Path.cwd(), _root_of_ids()))
    files = {file for folder in folders for file in folder.glob(pattern + SUFFIX)}
    rows = [row for file in _own_files(FAMILY) for row in scenario_paths_in(file)]
    matching_rows = [row for row in rows if fnmatch.fnmatchcase(scenario_id(row), pattern)]
    return [*sorted(files), *matching_rows]


def _root_of_ids() -> Path:
    """Return the folder that ids of scenarios in the current folder are relative to."""
    return root_of(Path.cwd() / "any")


def _describe_unknown_name(word: str, name: str) -> str:
    if name.startswith("findings::"):
        return f"{word}: a finding belongs to a whole run; name the scenarios that shall be played"
    areas = {id_.split("/", 1)[0] for id_ in bundled_files()}
    message = _describe_neighbours(word, name, _suggested_names(name, areas))
    return f"{word}: no such file or folder, and unknown scenario {name!r}{message}"


def _describe_neighbours(word: str, name: str, valid: Sequence[str]) -> str:
    """Return what may be meant: a scenario beside the path, one of the valid names, or all beside.

    Paths of one folder are alike, so those beside the path are compared by their last part.
    """
    neighbours = _neighbours(word, name)
    by_stem = {Path(neighbour).name: neighbour for neighbour in neighbours}
    near = similar_names(_without_suffix(Path(name).name), by_stem)
    if near:
        return did_you_mean(by_stem[near[0]], neighbours)
    others = [id_ for id_ in valid if Path(id_).name not in by_stem]
    if similar_names(name, others) or not neighbours:
        message = unknown_name("scenario", name, others, listed=LIST_COMMAND)
        return message.removeprefix(f"unknown scenario {name!r}")
    more = len(neighbours) - _MAX_NEIGHBOURS
    listed = ", ".join(neighbours[:_MAX_NEIGHBOURS])
    return f"; beside it: {listed}{f' and {more} more' if more > 0 else ''}"


def _neighbours(word: str, name: str) -> list[str]:
    """Return the scenarios and families in the folder that a path names, as a user writes them.

    The folder is looked up in the current folder, then in that of the user's ids.
    """
    for path, root in ((Path(word), Path()), (Path(name), _root_of_ids())):
        try:
            files = sorted(file.name for file in (root / path.parent).iterdir())
        except OSError:
            continue
        found = [_without_suffix(file) for file in files if file.endswith(SUFFIXES)]
        if found:
            return [str(path.parent / stem) for stem in found]
    return []


def _without_suffix(name: str) -> str:
    return name.removesuffix(SUFFIX).removesuffix(FAMILY)


def _own_ids() -> list[str]:
    """Return the ids of the user's own scenarios."""
    files = [*_own_files(SUFFIX), *_own_files(FAMILY)]
    return [scenario_id(path) for file in files for path in scenario_paths_in(file)]


def _own_files(suffix: str) -> Iterator[Path]:
    """Yield the user's own files with this suffix; hidden folders and node_modules are skipped."""
    for folder, subfolders, names in os.walk(_root_of_ids()):
        subfolders[:] = [
            name for name in subfolders if not name.startswith(".") and name != "node_modules"
        ]
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(suffix))


def _suggested_names(name: str, areas: Iterable[str]) -> list[str]:
    """Return names to suggest: ids that end in `name`, else all, with areas if it has no slash."""
    ids = [*bundled_files(), *_own_ids()]
    last = [id_ for id_ in ids if id_.endswith(f"/{name}")]
    return last or ([*areas, BUNDLED_WORD, *ids] if "/" not in name else ids)
