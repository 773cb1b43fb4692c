"""Reasons why `--race` selects no scenario of a run, and what to do about it."""

from collections.abc import Iterable
from pathlib import Path

from harness.cli.suite.selection import selection
from harness.scenario.explain import unknown_name
from harness.scenario.identity import SUFFIXES
from harness.scenario.loader import Loaded, ScenarioError, find_scenarios, load
from harness.scenario.model import ACTIONS, Action
from harness.scenario.races import placements


def race_problem(race: str, paths: Iterable[Path]) -> str:
    """Return why `--race` selects nothing in these files and folders.

    "" if it selects something, or no scenario is valid.
    """
    loaded = list(_load_all(paths))
    wanted_races = selection(race, "").races
    actions: list[Action] = [action for action in ACTIONS if action in dict(wanted_races)]
    raced: list[tuple[Loaded, Action]] = [
        (scenario, action)
        for scenario in loaded
        for action in actions
        if action in scenario.scenario.race_actions
    ]
    if not loaded:
        return ""
    if not raced:
        return _no_race_message(loaded, actions)
    names = {
        (action, place.position.name)
        for scenario, action in raced
        for place in placements(scenario.scenario, action)
    }
    if any(position == "" or (action, position) in names for action, position in wanted_races):
        return ""
    of_a_race = {action for _, action in raced}
    wanted_action, position = next(
        wanted_race for wanted_race in wanted_races if wanted_race[0] in of_a_race
    )
    return unknown_name(
        "position", position, {name for action, name in names if action == wanted_action}
    )


def _load_all(paths: Iterable[Path]) -> Iterable[Loaded]:
    for _, file in find_scenarios(
        path for path in paths if path.is_dir() or path.name.endswith(SUFFIXES)
    ):
        try:
            yield load(file)
        except ScenarioError:
            continue  # It is reported when the file is collected.


def _no_race_message(loaded: list[Loaded], actions: list[Action]) -> str:
    """Return a message that the files lack these races in their key `races`."""
    first = loaded[0].scenario.race_actions
    which = str(loaded[0].path) if len(loaded) == 1 else f"none of the {len(loaded)} files"
    races_line = f"races: [{', '.join(actions)}]" if len(actions) < len(ACTIONS) else "races: all"
    if len(loaded) == 1 and first:
        both = ", ".join(action for action in ACTIONS if action in {*first, *actions})
        return f"the key races of {which} has {', '.join(first)}; make it races: [{both}]"
    has = "has no key races" if len(loaded) == 1 else "has a key races with it"
    return f"{which} {has}; add the line {races_line}"
