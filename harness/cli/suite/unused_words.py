"""Words of `--require`, `--tag` and `--race` that no scenario of a run uses.

Such a word changes nothing, and a user would take the verdict for one about it. Scenarios are found
by their ids, since workers report no more than these.
"""

import argparse
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from harness.cli.suite.selection import tags
from harness.judge.base import Monitor
from harness.scenario.bundled import bundled_files
from harness.scenario.identity import SUFFIXES, scenario_id
from harness.scenario.loader import Loaded, ScenarioError, find_scenarios, load
from harness.scenario.race_id import RaceId
from harness.trace.surfaces import surface_of

_ALL = "all"
_NEEDED_BY_ALL = "core"


def unused_word(
    option: argparse.Namespace,
    ids: Collection[str],
    paths: Iterable[Path],
    rules: Mapping[str, type[Monitor]],
    promised: Collection[str],
) -> str:
    """Return a message about a word that no scenario among `ids` uses; "" if there is none.

    `paths` are the files and folders of the user's own scenarios, `promised` the capabilities of
    the target: a scenario that needs another one is not played, and so uses no word of `--require`.
    With `--lf` a run continues another one, so no word counts as unused.
    """
    if not ids or getattr(option, "lf", False):
        return ""
    required = [word.strip() for word in option.require.split(",")] if option.require else []
    needs = [word for word in required if word != _NEEDED_BY_ALL and _ALL not in required]
    words = [
        *(("--require", need) for need in needs),
        *(("--tag", tag) for tag in sorted(tags(option.tag))),
    ]
    used, blocked = _used_words(words, ids, paths, rules, promised)
    unused = [word for word in words if word not in used]
    if not unused:
        return _unused_race(option.race, ids)
    name, word = unused[0]
    if name == "--tag":
        return f"--tag: no scenario of this run has the tag {word!r}; leave it out"
    if word in blocked:
        others = ",".join(blocked[word])
        return (
            f"--require {word}: every scenario that needs it also needs another capability, which "
            "neither the profile nor this option names, so it would not be judged; "
            f"use --require {word},{others}"
        )
    return (
        f"--require {word}: no scenario of this run needs it, so it would not be judged; leave it "
        f"out, or add scenarios that need it: harness explain {word}"
    )


def _used_words(
    words: Collection[tuple[str, str]],
    ids: Collection[str],
    paths: Iterable[Path],
    rules: Mapping[str, type[Monitor]],
    promised: Collection[str],
) -> tuple[set[tuple[str, str]], dict[str, list[str]]]:
    """Return the words that a scenario uses: a need, its own or a covered rule's, or a tag.

    Return also the needs of scenarios that are not played, each with the fewest capabilities that
    one of these lacks. If only generated cases are played, all words count as used.
    """
    used: set[tuple[str, str]] = set()
    blocked: dict[str, list[str]] = {}
    has_scenario = False
    for loaded in _scenarios_of(ids, paths) if words else ():
        has_scenario = True
        covered = [rules[rule] for rule in loaded.scenario.covers if rule in rules]
        needs = {*loaded.scenario.needs, *(need for rule in covered for need in rule.needs)}
        missing = sorted(set(loaded.scenario.needs).difference(promised))
        used |= {("--require", need) for need in needs} if not missing else set()
        for need in needs if missing else ():
            if need not in blocked or len(missing) < len(blocked[need]):
                blocked[need] = missing
        used |= {("--tag", tag) for tag in loaded.tags}
        if used.issuperset(words):
            break
    return (used if has_scenario else set(words)), blocked


def _scenarios_of(ids: Collection[str], paths: Iterable[Path]) -> Iterator[Loaded]:
    """Yield the scenarios with these ids, each on its surface; skip files that are not valid."""
    folders = [path for path in paths if path.is_dir() or path.name.endswith(SUFFIXES)]
    own_files = {scenario_id(file): file for _, file in find_scenarios(folders)}
    for name in ids:
        scenario = RaceId.parse(name).scenario
        file = own_files.get(scenario) or bundled_files().get(scenario)
        if file is not None:
            with contextlib.suppress(ScenarioError):
                yield load(file).on_surface(surface_of(name))


def _unused_race(race: str, ids: Collection[str]) -> str:
    """Return a message about a word of `--race` without a race in this run; "" if all have one."""
    raced = [RaceId.parse(name) for name in ids]
    for word in map(str.strip, race.split(",")) if race else ():
        wanted = RaceId.parse_name(word)
        if wanted.action != _ALL and not any(
            one.action == wanted.action and wanted.position in ("", one.position) for one in raced
        ):
            return f"--race {word}: no scenario of this run has this race; leave it out"
    return ""
