"""Reasons for differences that stay, read from a file of the user.

A TOML file of rows: `[[difference]]` with `place`, a pattern of the line of a shape or of the words
of a difference of order, and `reason`. `scenarios` and `releases`, lists of patterns of scenarios
and of targets, limit a row.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from harness.errors import UsageError


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason of differences whose line matches a pattern; empty `scenarios` are all."""

    place: str
    reason: str
    scenarios: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()

    def is_of(self, words: str, scenario: str, target: str) -> bool:
        """Return whether the row gives the reason of a difference in a scenario of a target."""
        return (
            fnmatchcase(words, self.place)
            and _matches_one(scenario, self.scenarios)
            and _matches_one(target, self.releases)
        )


def read_reasons(path: Path) -> tuple[Reason, ...]:
    """Return the rows of a file. Raises `UsageError` if it is not such a file."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = cast("list[dict[str, Any]]", table.get("difference", []))
        return tuple(
            Reason(
                str(row["place"]),
                str(row["reason"]),
                tuple(map(str, row.get("scenarios", ()))),
                tuple(map(str, row.get("releases", ()))),
            )
            for row in rows
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as problem:
        raise UsageError(f"{path}: not a file of reasons: {problem}") from problem


def reason_of(words: str, scenario: str, target: str, reasons: Sequence[Reason]) -> str:
    """Return the reason of the first row that matches, "" if none does."""
    for row in reasons:
        if row.is_of(words, scenario, target):
            return row.reason
    return ""


def _matches_one(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
