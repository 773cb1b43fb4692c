"""Arguments of a run: paths for pytest, scenarios by id, rules."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.cli.suite.selection import Selection
from harness.errors import UsageError
from harness.scenario.explain import unknown
from harness.scenario.loader import ScenarioError, load, without
from harness.scenario.model import Action
from harness.scenario.named import by_name, is_path, plain, wrong_suffix
from harness.scenario.races import placements

RULES = "rules::"
# A line of pytest's short summary, pasted whole: `FAILED turns/usage - what is wrong`.
_SUMMARY_LINE = re.compile(r"(?:FAILED|ERROR|PASSED|XFAIL|XPASS) +(\S.*?)(?: - .*)?", re.DOTALL)


@dataclass(slots=True)
class Wanted:
    """The scenarios that the arguments name.

    `paths` are left to pytest; `picks` are scenarios by id, each with the races that were named,
    None where none was; `rules` come from words as reports print them, `rules::turn.completes`;
    `odd` are messages about named files that are no scenarios; `everything` is set where no place
    was named.
    """

    paths: list[str] = field(default_factory=list[str])
    picks: dict[Path, Selection | None] = field(default_factory=dict[Path, Selection | None])
    rules: list[str] = field(default_factory=list[str])
    odd: list[str] = field(default_factory=list[str])
    everything: bool = False

    def given(self) -> list[Path]:
        """The files and folders that were named."""
        return [*(Path(word.split("::", 1)[0]) for word in self.paths), *self.picks]


def wanted(words: Iterable[str], *, scenarios_only: bool) -> Wanted:
    """Read the arguments. With `scenarios_only` nothing else may be named (`harness run`).

    Raises `UsageError`.
    """
    arguments = Wanted()
    for word in map(_of_summary, words):
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


def deselected(words: Iterable[str]) -> list[str]:
    """Return the values of `--deselect`, scenarios also as pytest prints them."""
    return [word if is_path(word) else plain(word) for word in map(_of_summary, words)]


def _of_summary(word: str) -> str:
    """The id in a summary line that was pasted whole."""
    line = _SUMMARY_LINE.fullmatch(word)
    return line[1] if line and not is_path(word) else word


def empty(found: Wanted) -> str:
    """A message about the paths that hold no scenario; "" where all hold some."""
    return "; ".join(without(Path(word) for word in found.paths))


def _rule(word: str) -> str:
    """The rule of `rules::turn.completes`, also as pytest prints it below the project's folder."""
    head, colons, rule = word.partition("::")
    return rule if colons and head.split("/")[-1] == RULES.rstrip(":") and not is_path(word) else ""


def _pick(found: Wanted, word: str) -> None:
    named_scenarios = by_name(word)
    for file in named_scenarios.files:
        before = found.picks.get(file, Selection(scenarios=False))
        if named_scenarios.action is None:
            # Where no race of it was named, `--race` and `-m` choose.
            raced = before is not None and before.races
            found.picks[file] = replace(before, scenarios=True) if before and raced else None
            continue
        _check_race(word, file, named_scenarios.action, named_scenarios.position)
        race = (named_scenarios.action, named_scenarios.position)
        before = before or Selection()
        found.picks[file] = replace(before, races=(*before.races, race))


def _check_race(word: str, file: Path, action: Action, position: str) -> None:
    """Raise `UsageError` for a race that the scenario does not have."""
    try:
        loaded = load(file)
    except ScenarioError:
        return  # It is reported when the file is collected.
    if action not in loaded.scenario.raced:
        raise UsageError(
            f"{word}: {loaded.id} is not raced by {action}; it has races: "
            f"{', '.join(loaded.scenario.raced) or 'none'} (the key races of the file says so)"
        )
    names = [placement.position.name for placement in placements(loaded.scenario, action)]
    if position not in ("", *names):
        raise UsageError(f"{word}: {unknown('position', position, names)}")
