"""Names of scenarios as a user may write them: a path, an id as reports print it, a pattern.

A file or folder of that name wins over an id.
"""

import fnmatch
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.scenario.bundled import bundled_files
from harness.scenario.explain import unknown
from harness.scenario.families import is_row, scenarios_in
from harness.scenario.identity import FAMILY, SUFFIX, SUFFIXES, root_of, scenario_id
from harness.scenario.loader import find, without
from harness.scenario.model import ACTIONS, Action
from harness.scenario.race_id import RaceId

LISTED = "harness scenario list"
"""The command that lists the bundled scenarios."""
BUNDLED = "bundled"
"""The word for all scenarios that ship with the harness."""


_ACTIONS: dict[str, Action] = {action: action for action in ACTIONS}


@dataclass(frozen=True, slots=True)
class Named:
    """The scenarios that a word names; of a race its action, and its position or ""."""

    files: tuple[Path, ...]
    action: Action | None = None
    position: str = ""


def is_path(word: str) -> bool:
    """Return whether a word names a file or folder that is there, or something within such
    a file.
    """
    path = Path(word.split("::", 1)[0])
    try:
        return path.exists()
    except OSError:
        return False


def by_name(word: str) -> Named:
    """The scenarios of an id, of a folder of ids (`turns/`), of a pattern (`turns/*`), or of a
    race (`turns/plain-turn@interrupt@delta:2`). Raises `UsageError`.
    """
    race = RaceId.parse(plain(word))
    name, action = race.scenario, _ACTIONS.get(race.action)
    if race.name and action is None:
        raise UsageError(f"{word}: {unknown('action', race.action, ACTIONS)}")
    files = _files(name, word)
    if not files:
        raise UsageError(_nothing(word, name))
    if race.name and len(files) > 1:
        raise UsageError(f"{word}: a race is of one scenario, and {name} names {len(files)}")
    return Named(tuple(files), action, race.position)


def named_files(words: Sequence[str]) -> list[Path]:
    """The files of all words, sorted below each folder and without repetition.

    Raises `UsageError`, also for a folder that holds no scenario.
    """
    found: dict[Path, Path] = {}
    for word in words:
        for file in _of_path(word) if is_path(word) else by_name(word).files:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def wrong_suffix(path: Path) -> str:
    """Return a message about a file that is not named like a scenario; "" if it is."""
    if not path.is_file() or path.name.endswith(SUFFIXES):
        return ""
    stem = path.name.removesuffix(path.suffix).removesuffix(".scenario")
    return f"{path}: the name of a scenario file ends in {SUFFIX}; rename it to {stem}{SUFFIX}"


def _of_path(word: str) -> list[Path]:
    path = Path(word.split("::", 1)[0])
    problem = wrong_suffix(path) or "".join(without([path]))
    if problem:
        raise UsageError(problem)
    return [file for _, file in find([path])]


def plain(word: str) -> str:
    """A word without what pytest adds to an id where it runs below the project's folder."""
    while word.startswith(("./", "../")):
        word = word.split("/", 1)[1]
    return word


def _files(name: str, word: str) -> list[Path]:
    bundled = bundled_files()
    name = name.removesuffix(SUFFIX).removesuffix(FAMILY).rstrip("/")
    if name == BUNDLED:
        return list(bundled.values())
    if any(mark in name for mark in "*?["):
        of_suite = [file for id_, file in bundled.items() if fnmatch.fnmatchcase(id_, name)]
        return of_suite or _own(name)
    plainly = RaceId.parse(word).scenario.removesuffix(SUFFIX).removesuffix(FAMILY).rstrip("/")
    own = [Path(f"{plainly}{SUFFIX}"), _top() / (name + SUFFIX)]
    for file in own:
        if file.is_file() or is_row(file):
            return [file]
    if name in bundled:
        return [bundled[name]]
    folder, family = _top() / name, _top() / (name + FAMILY)
    below = [one for one in (family, folder) if name and one.exists()]
    if below:
        return [file for _, file in find(below)]
    return [file for id_, file in bundled.items() if name and id_.startswith(f"{name}/")]


def _own(pattern: str) -> list[Path]:
    """The user's own scenarios of a pattern: their files, or the families that make them."""
    if pattern.startswith("/"):
        return []
    folders = dict.fromkeys((Path.cwd(), _top()))
    files = {file for folder in folders for file in folder.glob(pattern + SUFFIX)}
    rows = [row for file in _own_files(FAMILY) for row in scenarios_in(file)]
    made = [row for row in rows if fnmatch.fnmatchcase(scenario_id(row), pattern)]
    return [*sorted(files), *made]


def _top() -> Path:
    """The folder below which the ids of scenarios in the current folder are told."""
    return root_of(Path.cwd() / "any")


def _nothing(word: str, name: str) -> str:
    if name.startswith("findings::"):
        return f"{word}: a finding belongs to a whole run; name the scenarios that shall be played"
    areas = {id_.split("/", 1)[0] for id_ in bundled_files()}
    what = unknown("scenario", name, _worth_naming(name, areas), listed=LISTED)
    return f"{word}: no such file or folder, and {what}"


def _own_ids() -> list[str]:
    """The ids of the user's own scenarios."""
    files = [*_own_files(SUFFIX), *_own_files(FAMILY)]
    return [scenario_id(path) for file in files for path in scenarios_in(file)]


def _own_files(suffix: str) -> Iterator[Path]:
    """The user's own files; hidden folders and those of packages are passed over."""
    for folder, below, names in os.walk(_top()):
        below[:] = [one for one in below if not one.startswith(".") and one != "node_modules"]
        yield from (Path(folder, one) for one in sorted(names) if one.endswith(suffix))


def _worth_naming(name: str, areas: Iterable[str]) -> list[str]:
    """Without a slash it was an area that was meant, or the last part of an id."""
    ids = [*bundled_files(), *_own_ids()]
    last = [id_ for id_ in ids if id_.endswith(f"/{name}")]
    return last or ([*areas, BUNDLED, *ids] if "/" not in name else ids)
