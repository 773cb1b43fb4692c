"""Frozen suites: the rules and scenarios that a release had, so that a verdict can be repeated.

A suite is a text file, an id a line behind its kind: `rule turn.completes`, `scenario
turns/plain-turn`, `requirement turn.completes`. `python -m tools.freeze` writes that of a release.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError

KINDS = ("rule", "scenario", "requirement")
SUFFIX = ".suite"


@dataclass(frozen=True, slots=True)
class Suite:
    """The ids that count; `name` is as the user wrote it."""

    name: str
    rules: frozenset[str]
    scenarios: frozenset[str]
    requirements: frozenset[str]

    def note(self, rules: Collection[str], scenarios: Collection[str]) -> str:
        """Return a line on what came after the suite, of all rules and bundled scenarios."""
        later_rules = len(set(rules) - self.rules)
        later_scenarios = len(set(scenarios) - self.scenarios)
        return (
            f"{self.name}; later rules: {later_rules}, which do not count; "
            f"later scenarios: {later_scenarios}, not played"
        )


def suite_names() -> list[str]:
    """Return the names of the suites that ship with the harness, such as `1.0`."""
    return sorted(file.name.removesuffix(SUFFIX) for file in _folder().glob(f"*{SUFFIX}"))


def load_suite(name: str) -> Suite:
    """Return a suite by its name or the path of its file. Raises `UsageError`."""
    shipped = _folder() / f"{name}{SUFFIX}"
    file = shipped if name in suite_names() else Path(name)
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if "/" in name or name.endswith(SUFFIX):
            raise UsageError(f"--suite {name}: cannot be read: {error}") from error
        known = ", ".join(suite_names())
        raise UsageError(f"--suite {name}: unknown suite; known: {known}, or a file") from error
    ids: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for number, line in enumerate(text.splitlines(), 1):
        kind, _, one = line.partition(" ")
        if line and not line.startswith("#"):
            if kind not in ids or not one or " " in one:
                raise UsageError(
                    f"{file}:{number}: expected a line such as 'rule turn.completes', got {line!r}"
                )
            ids[kind].add(one)
    return Suite(name, *(frozenset(ids[kind]) for kind in KINDS))


def _folder() -> Path:
    return Path(__file__).parent
