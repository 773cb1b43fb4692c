"""The collected scenarios that are played, and a message if there is none."""

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cli.suite.arguments import Wanted, empty
from harness.cli.suite.items import RaceItem, ScenarioItem
from harness.cli.suite.unraced import unraced
from harness.play.config import Config
from harness.scenario.bundled import bundled_files, listed_surfaces
from harness.scenario.explain import unknown
from harness.scenario.identity import file_of
from harness.scenario.loader import ScenarioError, load
from harness.scenario.model import Scenario
from harness.scenario.surfaces import needs_agent
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION

_PLAYS = {"--server-cmd": (SESSION,), "--agent-cmd": (EXEC, COMMAND), "--sdk-cmd": (SDK,)}


def unique(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items without duplicates: two arguments may name the same scenario."""
    seen_ids: set[str] = set()
    kept_items: list[pytest.Item] = []
    for item in items:
        if isinstance(item, ScenarioItem | RaceItem):
            if item.nodeid in seen_ids:
                continue
            seen_ids.add(item.nodeid)
        kept_items.append(item)
    return kept_items


def choose(
    items: list[pytest.Item], rules: Collection[str], tags: Collection[str]
) -> list[pytest.Item]:
    """Keep the scenarios that cover one of the rules and have one of the tags, and all else that
    is no scenario; gives what was dropped. Where no scenario covers the rules, all may show them.
    """
    playable = [item for item in items if isinstance(item, ScenarioItem | RaceItem)]
    covering = [item for item in playable if not set(rules).isdisjoint(item.loaded.scenario.covers)]
    kept_ids = {id(item) for item in (covering or playable)}
    kept_ids &= {id(item) for item in playable if not tags or not item.loaded.tags.isdisjoint(tags)}
    dropped: list[pytest.Item] = [item for item in playable if id(item) not in kept_ids]
    gone = {id(item) for item in dropped}
    items[:] = [item for item in items if id(item) not in gone]
    return dropped


def unknown_tag(option: Any, tags: Collection[str]) -> str:
    """A message about a word of `--tag` that no scenario has; "" where there is none.

    `tags` are those of the scenarios that were collected.
    """
    all_tags = {*_suite_tags(), *tags} if option.tag else set[str]()
    odd = [word for word in map(str.strip, option.tag.split(",")) if word not in all_tags]
    return f"--tag: {unknown('tag', odd[0], all_tags)}" if option.tag and odd else ""


def nothing_played(option: Any, wanted: Wanted) -> str:
    """Return why a run with a server has nothing to play on it; "" if unknown."""
    chosen = [f"{name} {value}" for name, value in _choices(option) if value]
    holds_none = "; ".join([*wanted.odd, *([empty(wanted)] if empty(wanted) else [])])
    if option.no_bundled or (option.harness_run and holds_none and not wanted.picks):
        reason = holds_none or (f"none is chosen by {', '.join(chosen)}" if chosen else "")
        reason = reason or "nothing else was found"
        return f"{'--no-bundled, and ' if option.no_bundled else ''}{reason}"
    race_reason = (
        unraced(option.race, wanted.given() or bundled_files().values()) if option.race else ""
    )
    if race_reason:
        return f"--race {option.race}: {race_reason}"
    return f"none is chosen by {', '.join(chosen)}" if chosen else _elsewhere(wanted)


def _elsewhere(wanted: Wanted) -> str:
    """By which option the scenarios that were picked can be played; "" where none was picked."""
    scenarios = _loaded(wanted.picks)
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
    """A note that an SDK plays sessions' scenarios only on an agent's program; "" where it does,
    or where none was asked for.
    """
    if SDK not in config.surfaces or config.profile.exec.command:
        return ""
    listed = [file for file in files if SDK in listed_surfaces(file_of(file))]
    number = sum(map(needs_agent, _loaded(listed)))
    if not number:
        return ""
    give = "give --agent-cmd too, whose program the SDK starts"
    return f"{number} scenario(s) of sessions were not played through the SDK: {give}"


def _loaded(files: Collection[Path]) -> list[Scenario]:
    scenarios: list[Scenario] = []
    for file in files:
        with contextlib.suppress(ScenarioError):
            scenarios.append(load(file).scenario)
    return scenarios


def _choices(option: Any) -> list[tuple[str, str]]:
    return [
        ("--tag", option.tag),
        ("--race", option.race),
        ("-k", option.keyword),
        ("-m", option.markexpr),
        ("--deselect", " ".join(option.deselect or ())),
        ("--lf", "(what failed last)" if getattr(option, "lf", False) else ""),
    ]


def _suite_tags() -> set[str]:
    """Every tag of the bundled scenarios, on all surfaces."""
    tags = {EXEC, COMMAND, SDK}
    for file in bundled_files().values():
        try:
            tags |= load(file).tags
        except ScenarioError:
            continue
    return tags
