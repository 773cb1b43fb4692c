"""Reasons why `--race` chooses no scenario of a run, and what to do about it."""

from collections.abc import Iterable
from pathlib import Path

from harness.cli.suite.selection import selection
from harness.scenario.explain import unknown
from harness.scenario.identity import SUFFIXES
from harness.scenario.loader import Loaded, ScenarioError, find, load
from harness.scenario.model import ACTIONS, Action
from harness.scenario.races import placements


def unraced(race: str, given: Iterable[Path]) -> str:
    """A message about files and folders in which `--race` chooses nothing; "" where it chooses
    something, or where no scenario can be used.
    """
    loaded = list(_loaded(given))
    asked = selection(race, "").races
    actions: list[Action] = [one for one in ACTIONS if one in dict(asked)]
    named: list[tuple[Loaded, Action]] = [
        (one, action) for one in loaded for action in actions if action in one.scenario.raced
    ]
    if not loaded:
        return ""
    if not named:
        return _without(loaded, actions)
    names = {
        (action, place.position.name)
        for one, action in named
        for place in placements(one.scenario, action)
    }
    if any(position == "" or (action, position) in names for action, position in asked):
        return ""
    of_a_race = {action for _, action in named}
    wanted, position = next(one for one in asked if one[0] in of_a_race)
    return unknown("position", position, {name for action, name in names if action == wanted})


def _loaded(given: Iterable[Path]) -> Iterable[Loaded]:
    for _, file in find(path for path in given if path.is_dir() or path.name.endswith(SUFFIXES)):
        try:
            yield load(file)
        except ScenarioError:
            continue  # It is reported when the file is collected.


def _without(loaded: list[Loaded], actions: list[Action]) -> str:
    """That the files do not say that they are raced so."""
    first = loaded[0].scenario.raced
    which = str(loaded[0].path) if len(loaded) == 1 else f"none of the {len(loaded)} files"
    wanted = f"races: [{', '.join(actions)}]" if len(actions) < len(ACTIONS) else "races: all"
    if len(loaded) == 1 and first:
        both = ", ".join(one for one in ACTIONS if one in {*first, *actions})
        return f"the key races of {which} has {', '.join(first)}; make it races: [{both}]"
    has = "has no key races" if len(loaded) == 1 else "has a key races with it"
    return f"{which} {has}; add the line {wanted}"
