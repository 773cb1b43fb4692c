"""Arguments of a run: paths for pytest, scenarios by id, rules."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.cli.suite.selection import Selection
from harness.errors import UsageError
from harness.scenario.explain import unknown_name
from harness.scenario.loader import ScenarioError, describe_empty_folders, load
from harness.scenario.model import Action
from harness.scenario.races import placements
from harness.scenario.scenario_names import (
    is_path,
    scenarios_by_name,
    strip_relative_prefix,
    wrong_suffix,
)

RULES = "rules::"
# A line of pytest's short summary, pasted whole: `FAILED turns/usage - what is wrong`.
_SUMMARY_LINE = re.compile(r"(?:FAILED|ERROR|PASSED|XFAIL|XPASS) +(\S.*?)(?: - .*)?", re.DOTALL)


@dataclass(slots=True)
class RunArguments:
    """The scenarios that the arguments name.

    `paths` are left to pytest; `picks` are scenarios by id, each with the races named, None if none
    was; `rules` come from words as reports print them, `rules::turn.completes`; `odd` are messages
    about named files that are not scenarios; `plays_everything` is set if no place was named.
    """

    paths: list[str] = field(default_factory=list[str])
    picks: dict[Path, Selection | None] = field(default_factory=dict[Path, Selection | None])
    rules: list[str] = field(default_factory=list[str])
    odd: list[str] = field(default_factory=list[str])
    plays_everything: bool = False

    def named_paths(self) -> list[Path]:
        """Return the files and folders that were named."""
        return [*(Path(word.split("::", 1)[0]) for word in self.paths), *self.picks]


def parse_arguments(words: Iterable[str], *, scenarios_only: bool) -> RunArguments:
    """Parse the arguments of a run.

    Raises `UsageError` for an unknown name or race; with `scenarios_only`, as in `harness run`,
    also for a file that is not a scenario.
    """
    arguments = RunArguments()
    for word in map(_id_of_summary_line, words):
        rule = _rule(word)
        if rule:
            arguments.rules.append(rule)
        elif is_path(word):
            path = Path(word.split("::", 1)[0])
            problem = wrong_suffix(path)
            if problem and scenarios_only:
                raise UsageError(problem)
            if problem and path.suffix in (".yaml", ".yml"):
                arguments.odd.append(problem)
            arguments.paths.append(word)
        else:
            _pick(arguments, word)
    return arguments


def deselected_ids(words: Iterable[str]) -> list[str]:
    """Return the values of `--deselect`; scenarios may be given as pytest prints them."""
    return [
        word if is_path(word) else strip_relative_prefix(word)
        for word in map(_id_of_summary_line, words)
    ]


def _id_of_summary_line(word: str) -> str:
    """Return the id in a line of pytest's summary; any other word as it is."""
    line = _SUMMARY_LINE.fullmatch(word)
    return line[1] if line and not is_path(word) else word


def without_scenarios(arguments: RunArguments) -> str:
    """Return a message about paths without a scenario; "" if all have some."""
    return "; ".join(describe_empty_folders(Path(word) for word in arguments.paths))


def _rule(word: str) -> str:
    """Return the rule of `rules::turn.completes`, with or without a path; "" for other words."""
    head, colons, rule = word.partition("::")
    return rule if colons and head.split("/")[-1] == RULES.rstrip(":") and not is_path(word) else ""


def _pick(arguments: RunArguments, word: str) -> None:
    named_scenarios = scenarios_by_name(word)
    for file in named_scenarios.files:
        before = arguments.picks.get(file, Selection(scenarios=False))
        if named_scenarios.action is None:
            # Unless a race of this scenario was named, `--race` and `-m` choose.
            raced = before is not None and before.races
            arguments.picks[file] = replace(before, scenarios=True) if before and raced else None
            continue
        _check_race(word, file, named_scenarios.action, named_scenarios.position)
        race = (named_scenarios.action, named_scenarios.position)
        before = before or Selection()
        arguments.picks[file] = replace(before, races=(*before.races, race))


def _check_race(word: str, file: Path, action: Action, position: str) -> None:
    """Raise `UsageError` for a race that the scenario does not have."""
    try:
        loaded = load(file)
    except ScenarioError:
        return  # It is reported when the file is collected.
    if action not in loaded.scenario.race_actions:
        actions = ", ".join(loaded.scenario.race_actions) or "none"
        raise UsageError(
            f"{word}: {loaded.id} is not raced by {action}; it has races: {actions} "
            "(the key races of the file says so)"
        )
    names = [placement.position.name for placement in placements(loaded.scenario, action)]
    if position not in ("", *names):
        raise UsageError(f"{word}: {unknown_name('position', position, names)}")
