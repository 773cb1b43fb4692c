"""Known findings: a profile's deviations and the entries of a baseline file, one format.

Here: matching rows and findings against entries, and which entries have gone stale. Not here: what
a profile is (target), whether what an entry names exists (typos, globs).
"""

import dataclasses
import fnmatch
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.rules.verdict import Row, Verdict
from harness.scenario.races import base_id
from harness.suite.outcome import Finding
from harness.target.mistakes import mistake
from harness.target.profile import Deviation, ProfileError
from harness.target.tomltext import Toml, TomlError, Where, read_toml


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    deviations: list[Deviation] = Field(default_factory=list[Deviation])


@dataclasses.dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of a baseline file, and where each stands."""

    entries: tuple[Deviation, ...]
    toml: Toml

    def place(self, index: int, key: str) -> Where:
        """Where a key of an entry stands."""
        return self.toml.place(("deviations", index, key))


def load_baseline(path: Path) -> Baseline:
    """A baseline file (`[[deviations]]` as in a profile). Raises `ProfileError`."""
    try:
        toml = read_toml(path.read_text("utf-8"), str(path))
    except FileNotFoundError as error:
        raise ProfileError(f"--baseline {path}: no such file") from error
    except OSError as error:
        raise ProfileError(f"--baseline {path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"--baseline {path}: cannot be read: {error}") from error
    except TomlError as error:
        raise ProfileError(str(error)) from error
    try:
        return Baseline(tuple(_File.model_validate(toml.value).deviations), toml)
    except ValidationError as error:
        raise ProfileError(mistake(error, _File, toml)) from error


def known_row(row: Row, scenario: str, entries: Sequence[Deviation]) -> Row:
    """The row, KNOWN where it is a violation that an entry names."""
    if row.verdict is not Verdict.FAIL:
        return row
    for entry in entries:
        if _matches(entry, row.rule, scenario, f"{row.subject} {row.expected} {row.actual}"):
            return dataclasses.replace(row, verdict=Verdict.KNOWN)
    return row


def known_finding(finding: Finding, scenario: str, entries: Sequence[Deviation]) -> Finding:
    """The finding, with the reason of the entry that names it."""
    for entry in entries:
        if _matches(entry, finding.id, scenario, finding.message):
            return dataclasses.replace(finding, known=entry.reason)
    return finding


def reason_of(row: Row, scenario: str, entries: Sequence[Deviation]) -> str:
    """Why a KNOWN row is known."""
    for entry in entries:
        if _matches(entry, row.rule, scenario, f"{row.subject} {row.expected} {row.actual}"):
            return entry.reason
    return ""


def _matches(entry: Deviation, rule: str, scenario: str, text: str) -> bool:
    return entry.rule == rule and _is_of(scenario, entry) and entry.pinned in text


def _is_of(scenario: str, entry: Deviation) -> bool:
    """Whether an entry speaks of a scenario, or of the one that a race was made from."""
    names = {scenario, base_id(scenario)}
    return any(fnmatch.fnmatchcase(name, entry.scenario) for name in names)


@dataclasses.dataclass(frozen=True, slots=True)
class Staleness:
    """What became of the entries of a baseline in one run."""

    stale: tuple[Deviation, ...]
    unchecked: tuple[Deviation, ...]


def staleness(
    entries: Sequence[Deviation],
    rows: dict[str, list[Row]],
    findings: dict[str, list[Finding]],
    completed: set[str],
    all_scenarios: set[str],
) -> Staleness:
    """Which steady entries are stale, and which could not be checked.

    `rows` and `findings` by scenario; `completed` the scenarios that ran to the end. An entry is
    stale when its scenarios all ran to the end, and the rule gained a witness and no violation.
    """
    stale: list[Deviation] = []
    unchecked: list[Deviation] = []
    for entry in entries:
        concerned = {name for name in all_scenarios if fnmatch.fnmatchcase(name, entry.scenario)}
        hits = any(
            _matches(entry, row.rule, name, f"{row.subject} {row.expected} {row.actual}")
            and row.verdict in (Verdict.FAIL, Verdict.KNOWN)
            for name in concerned
            for row in rows.get(name, ())
        ) or any(
            _matches(entry, finding.id, name, finding.message)
            for name in concerned
            for finding in findings.get(name, ())
        )
        if hits or entry.flaky:
            continue
        judged = any(row.rule == entry.rule for name in concerned for row in rows.get(name, ()))
        # An entry about a scenario's own verdict has no witness to wait for.
        judged = judged or entry.rule.startswith("scenario.")
        if concerned and concerned <= completed and judged:
            stale.append(entry)
        else:
            unchecked.append(entry)
    return Staleness(tuple(stale), tuple(unchecked))
