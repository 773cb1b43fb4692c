"""Baseline entries about scenarios that do not exist are refused.

Scenarios that are not played now count too, since a run may play only a part of what a baseline is
about.
"""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.client.target.tomltext import Place
from harness.errors import UsageError
from harness.report.results.users_scenarios import own_of
from harness.scenario.bundled import bundled_ids, bundled_scenario
from harness.scenario.model import ACTIONS, Action
from harness.scenario.race_id import RaceId
from harness.scenario.races import placements
from harness.trace.nearest import unknown
from harness.trace.surfaces import SESSION, surface_of

# The scenario name of what `harness fuzz` plays.
FUZZ = "fuzz"


@dataclass(frozen=True, slots=True)
class Spoken:
    """The glob of an entry, and its place in the file."""

    glob: str
    where: Place


def check_globs(spoken: Sequence[Spoken], given: Iterable[Path]) -> None:
    """Raises `UsageError` for an entry about no scenario that exists.

    `given` are the files and folders that the run was given.
    """
    wanted = [one for one in spoken if not _matches_any(one.glob, _bundled())]
    if not wanted:
        return
    own = own_of(given)
    for one in wanted:
        if not _matches_any(one.glob, own.named_by(one.glob)):
            theirs = own.everywhere()
            if not _matches_any(one.glob, theirs):
                near = unknown("scenario", one.glob, _worth_naming(one.glob, theirs))
                raise UsageError(f"{one.where}: scenario: {near}")


def _worth_naming(glob: str, theirs: set[str]) -> set[str]:
    """The ids to suggest: the id itself where its race is wrong, those that end so, or else all."""
    every, name = {*_bundled(), *theirs}, RaceId.parse(glob).scenario
    meant = {one for one in every if one == name or one.endswith(f"/{name}")}
    return meant or {*every, *_folders(every)}


def _bundled() -> set[str]:
    return {*bundled_ids(), FUZZ}


def _folders(names: Iterable[str]) -> set[str]:
    return {f"{name.rpartition('/')[0]}/*" for name in names if "/" in name}


def _matches_any(glob: str, names: Iterable[str]) -> bool:
    """Return whether a glob matches a scenario, a race of it or a placement of it."""
    race = RaceId.parse(glob)
    if surface_of(glob) != SESSION:
        # Which of somebody's own scenarios are played there is not known by their files' names.
        return any(fnmatch.fnmatchcase(one, race.scenario) for one in names)
    for one in names:
        if fnmatch.fnmatchcase(one, glob):
            return True
        if not race.name and any(
            fnmatch.fnmatchcase(str(RaceId(one, action)), glob) for action in ACTIONS
        ):
            return True
        if race.name and fnmatch.fnmatchcase(one, race.scenario) and _is_raced(one, race):
            return True
    return False


def _is_raced(scenario: str, glob: RaceId) -> bool:
    """Return whether the scenario has a race, and a position in it, that the globs match."""
    actions: list[Action] = [one for one in ACTIONS if fnmatch.fnmatchcase(one, glob.action)]
    if not actions or scenario not in bundled_ids():
        return bool(actions)
    loaded = bundled_scenario(scenario)
    actions = [one for one in actions if one in loaded.scenario.raced]
    if not glob.position:
        return bool(actions)
    return any(
        fnmatch.fnmatchcase(one.position.name, glob.position)
        for action in actions
        for one in placements(loaded.scenario, action)
    )
