"""Selection among the collected scenarios, and messages if none is left."""

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cli.suite.arguments import RunArguments, without_scenarios
from harness.cli.suite.items import RaceItem, ScenarioItem
from harness.cli.suite.race_problems import race_problem
from harness.play.config import Config
from harness.protocol.suites import Suite
from harness.scenario.bundled import bundled_files, bundled_ids, listed_surfaces
from harness.scenario.explain import unknown_name
from harness.scenario.identity import file_of
from harness.scenario.loader import ScenarioError, load
from harness.scenario.model import Scenario
from harness.scenario.surfaces import needs_agent
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION, scenario_of

_PLAYS = {"--server-cmd": (SESSION,), "--agent-cmd": (EXEC, COMMAND), "--sdk-cmd": (SDK,)}


def unique_items(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the items without duplicates: two arguments may name the same scenario."""
    seen_ids: set[str] = set()
    kept_items: list[pytest.Item] = []
    for item in items:
        if isinstance(item, ScenarioItem | RaceItem):
            if item.nodeid in seen_ids:
                continue
            seen_ids.add(item.nodeid)
        kept_items.append(item)
    return kept_items


def choose_items(
    items: list[pytest.Item], rules: Collection[str], tags: Collection[str]
) -> list[pytest.Item]:
    """Remove from `items`, and return, scenarios that cover none of the rules or have no such tag.

    Other items are kept. Without `tags`, or if no scenario covers the rules, they remove none.
    """
    playable = [item for item in items if isinstance(item, ScenarioItem | RaceItem)]
    covering = [item for item in playable if not set(rules).isdisjoint(item.loaded.scenario.covers)]
    kept_ids = {id(item) for item in (covering or playable)}
    kept_ids &= {id(item) for item in playable if not tags or not item.loaded.tags.isdisjoint(tags)}
    dropped: list[pytest.Item] = [item for item in playable if id(item) not in kept_ids]
    gone = {id(item) for item in dropped}
    items[:] = [item for item in items if id(item) not in gone]
    return dropped


def drop_later_items(items: list[pytest.Item], suite: Suite | None) -> list[pytest.Item]:
    """Remove from `items`, and return, bundled scenarios that came after the suite."""
    if suite is None:
        return []
    later = bundled_ids() - suite.scenarios
    dropped = [
        item
        for item in items
        if isinstance(item, ScenarioItem | RaceItem) and scenario_of(item.loaded.id) in later
    ]
    gone = {id(item) for item in dropped}
    items[:] = [item for item in items if id(item) not in gone]
    return list(dropped)


def unknown_tag(option: Any, tags: Collection[str]) -> str:
    """Return a message about a word of `--tag` that no scenario has; "" if there is none.

    `tags` are those of the collected scenarios.
    """
    all_tags = {*_suite_tags(), *tags} if option.tag else set[str]()
    odd = [word for word in map(str.strip, option.tag.split(",")) if word not in all_tags]
    return f"--tag: {unknown_name('tag', odd[0], all_tags)}" if option.tag and odd else ""


def why_nothing_played(option: Any, arguments: RunArguments) -> str:
    """Return why a run with a server has nothing to play on it; "" if unknown."""
    chosen = [f"{name} {value}" for name, value in _choices(option) if value]
    holds_none = "; ".join(
        [*arguments.odd, *([without_scenarios(arguments)] if without_scenarios(arguments) else [])]
    )
    if option.no_bundled or (option.harness_run and holds_none and not arguments.picks):
        reason = holds_none or (f"none is chosen by {', '.join(chosen)}" if chosen else "")
        reason = reason or "nothing else was found"
        return f"{'--no-bundled, and ' if option.no_bundled else ''}{reason}"
    race_reason = (
        race_problem(option.race, arguments.named_paths() or bundled_files().values())
        if option.race
        else ""
    )
    if race_reason:
        return f"--race {option.race}: {race_reason}"
    return f"none is chosen by {', '.join(chosen)}" if chosen else _other_options(arguments)


def _other_options(arguments: RunArguments) -> str:
    """Return a hint which options play the picked scenarios; "" if none was picked."""
    scenarios = _load_scenarios(arguments.picks)
    surfaces = {surface for scenario in scenarios for surface in scenario.surfaces}
    options = [
        option
        for option, option_surfaces in _PLAYS.items()
        if not surfaces.isdisjoint(option_surfaces)
    ]
    if all(map(needs_agent, scenarios)):
        options = [
            "--sdk-cmd with --agent-cmd" if option == "--sdk-cmd" else option for option in options
        ]
    return f"what was named is played with {' or '.join(options)}" if options else ""


def unplayed_by_sdk(config: Config, files: Collection[Path]) -> str:
    """Return a note about session scenarios that an SDK plays only with an agent's program.

    "" if the program is given, or no such scenario was selected.
    """
    if SDK not in config.surfaces or config.profile.exec.command:
        return ""
    listed = [file for file in files if SDK in listed_surfaces(file_of(file))]
    number = sum(map(needs_agent, _load_scenarios(listed)))
    if not number:
        return ""
    give = "give --agent-cmd too, whose program the SDK starts"
    return f"{number} scenario(s) of sessions were not played through the SDK: {give}"


def _load_scenarios(files: Collection[Path]) -> list[Scenario]:
    scenarios: list[Scenario] = []
    for file in files:
        with contextlib.suppress(ScenarioError):
            scenarios.append(load(file).scenario)
    return scenarios


def _choices(option: Any) -> list[tuple[str, str]]:
    return [
        ("--suite", option.suite),
        ("--tag", option.tag),
        ("--race", option.race),
        ("-k", option.keyword),
        ("-m", option.markexpr),
        ("--deselect", " ".join(option.deselect or ())),
        ("--lf", "(what failed last)" if getattr(option, "lf", False) else ""),
    ]


def _suite_tags() -> set[str]:
    """Return every tag of the bundled scenarios, on all surfaces."""
    tags = {EXEC, COMMAND, SDK}
    for file in bundled_files().values():
        try:
            tags |= load(file).tags
        except ScenarioError:
            continue
    return tags
