"""A check for baseline entries about scenarios that do not exist.

Scenarios that are not played now count too, since a run may play only a part of the scenarios in a
baseline.
"""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.client.target.tomltext import Place
from harness.errors import UsageError
from harness.report.results.users_scenarios import user_scenarios_of
from harness.scenario.bundled import bundled_ids, bundled_scenario
from harness.scenario.model import ACTIONS, Action
from harness.scenario.race_id import RaceId
from harness.scenario.races import placements
from harness.trace.nearest import unknown_name
from harness.trace.surfaces import SESSION, surface_of

# The scenario names of the cases of `harness fuzz`, and of conversations under load.
FUZZ = "fuzz"
LOAD = "load"


@dataclass(frozen=True, slots=True)
class EntryScenario:
    """The glob of an entry, and its place in the file."""

    glob: str
    place: Place


def check_globs(entries: Sequence[EntryScenario], paths: Iterable[Path]) -> None:
    """Raise `UsageError` for an entry about no scenario that exists.

    `paths` are the files and folders that the run was given.
    """
    user_entries = [entry for entry in entries if not _matches_any(entry.glob, _bundled_names())]
    if not user_entries:
        return
    own = user_scenarios_of(paths)
    for entry in user_entries:
        if not _matches_any(entry.glob, own.ids_in(entry.glob)):
            all_ids = own.all_ids()
            if not _matches_any(entry.glob, all_ids):
                near = unknown_name("scenario", entry.glob, _suggestions(entry.glob, all_ids))
                raise UsageError(f"{entry.place}: scenario: {near}")


def _suggestions(glob: str, all_ids: set[str]) -> set[str]:
    """Return ids to suggest: those that are or end in the glob's scenario, else all ids."""
    every, name = {*_bundled_names(), *all_ids}, RaceId.parse(glob).scenario
    meant = {known for known in every if known == name or known.endswith(f"/{name}")}
    return meant or {*every, *_folders(every)}


def _bundled_names() -> set[str]:
    return {*bundled_ids(), FUZZ, LOAD}


def _folders(names: Iterable[str]) -> set[str]:
    return {f"{name.rpartition('/')[0]}/*" for name in names if "/" in name}


def _matches_any(glob: str, names: Iterable[str]) -> bool:
    """Return whether a glob matches a scenario, a race of it or a placement of it."""
    race = RaceId.parse(glob)
    if surface_of(glob) != SESSION:
        # The names of users' files do not tell which scenarios are played there.
        return any(fnmatch.fnmatchcase(name, race.scenario) for name in names)
    for name in names:
        if fnmatch.fnmatchcase(name, glob):
            return True
        if not race.name and any(
            fnmatch.fnmatchcase(str(RaceId(name, action)), glob) for action in ACTIONS
        ):
            return True
        if race.name and fnmatch.fnmatchcase(name, race.scenario) and _is_raced(name, race):
            return True
    return False


def _is_raced(scenario: str, glob: RaceId) -> bool:
    """Return whether the scenario has a race, and a position in it, that the globs match."""
    actions: list[Action] = [
        action for action in ACTIONS if fnmatch.fnmatchcase(action, glob.action)
    ]
    if not actions or scenario not in bundled_ids():
        return bool(actions)
    loaded = bundled_scenario(scenario)
    actions = [action for action in actions if action in loaded.scenario.race_actions]
    if not glob.position:
        return bool(actions)
    return any(
        fnmatch.fnmatchcase(placement.position.name, glob.position)
        for action in actions
        for placement in placements(loaded.scenario, action)
    )
