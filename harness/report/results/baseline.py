"""Known findings: a profile's deviations and the entries of a baseline file, in one format."""

import dataclasses
import fnmatch
import textwrap
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.client.target.mistakes import first_mistake
from harness.client.target.profile import Deviation
from harness.client.target.tomltext import Place, Toml, read_toml
from harness.errors import UsageError
from harness.judge.verdict import Row, Verdict
from harness.report.results.outcome import Finding
from harness.scenario.race_id import RaceId
from harness.trace.surfaces import SESSION, surface_of

_OF_SCENARIO = "scenario."
# Globs of scenarios named where a deviation is known.
MAX_SCENARIOS_NAMED: Final = 3


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    deviations: list[Deviation] = Field(default_factory=list[Deviation])


@dataclasses.dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of a baseline file, with their places in it."""

    entries: tuple[Deviation, ...]
    toml: Toml

    def place(self, index: int, key: str) -> Place:
        """Return the place of a key of an entry in the file."""
        return self.toml.place(("deviations", index, key))


def load_baseline(path: Path) -> Baseline:
    """Load a baseline file (`[[deviations]]` as in a profile).

    Raises `UsageError` if it cannot be read or an entry is not valid.
    """
    try:
        toml = read_toml(path.read_text("utf-8"), str(path))
    except FileNotFoundError as error:
        raise UsageError(f"--baseline {path}: no such file") from error
    except OSError as error:
        raise UsageError(f"--baseline {path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--baseline {path}: cannot be read: {error}") from error
    try:
        return Baseline(tuple(_File.model_validate(toml.value).deviations), toml)
    except ValidationError as error:
        raise UsageError(first_mistake(error, _File, toml)) from error


def mark_known_row(row: Row, scenario: str, entries: Sequence[Deviation]) -> Row:
    """Return the row, with the verdict KNOWN if it is a violation that an entry matches."""
    if row.verdict is not Verdict.FAIL:
        return row
    for entry in entries:
        if _matches(entry, row.rule, scenario, _text(row)):
            return dataclasses.replace(row, verdict=Verdict.KNOWN)
    return row


def mark_known_finding(finding: Finding, scenario: str, entries: Sequence[Deviation]) -> Finding:
    """Return the finding, `known` by the reason of the first entry that matches it, if any."""
    for entry in entries:
        if _matches(entry, finding.id, scenario, finding.message):
            return dataclasses.replace(finding, known=entry.reason)
    return finding


def reason_of(row: Row, scenario: str, entries: Sequence[Deviation]) -> str:
    """Return the reason of the first entry that matches a row, "" if none does."""
    entry = entry_of(row, scenario, entries)
    return "" if entry is None else entry.reason


def reason_elsewhere(row: Row, entries: Sequence[Deviation]) -> str:
    """Return the reason of the first entry that matches a row in any scenario; "" if none does.

    Before it are at most MAX_SCENARIOS_NAMED scenarios of the entries with this reason.
    """
    matching = [entry for entry in entries if entry.rule == row.rule and entry.pinned in _text(row)]
    if not matching:
        return ""
    reason = matching[0].reason
    scenarios = sorted({entry.scenario for entry in matching if entry.reason == reason})
    return f"in {', '.join(scenarios[:MAX_SCENARIOS_NAMED])}: {reason}"


def entry_of(row: Row, scenario: str, entries: Sequence[Deviation]) -> Deviation | None:
    """Return the first entry that matches a row, None if none does."""
    for entry in entries:
        if _matches(entry, row.rule, scenario, _text(row)):
            return entry
    return None


def _text(row: Row) -> str:
    """Return the text of a row that is searched for a pinned text."""
    return f"{row.subject} {row.expected} {row.actual}"


def _matches(entry: Deviation, rule: str, scenario: str, text: str) -> bool:
    return entry.rule == rule and is_about(scenario, entry) and entry.pinned in text


def is_about(scenario: str, entry: Deviation) -> bool:
    """Return whether an entry is about a scenario, or about the scenario of a race.

    A scenario on another surface than the session is another scenario: an entry is about it by its
    whole id (`turns/*@exec`), or is about every scenario.
    """
    if surface_of(scenario) != SESSION:
        is_other_surface = entry.scenario == "*" or surface_of(entry.scenario) != SESSION
        return is_other_surface and fnmatch.fnmatchcase(scenario, entry.scenario)
    names = {scenario, RaceId.parse(scenario).scenario}
    return any(fnmatch.fnmatchcase(name, entry.scenario) for name in names)


@dataclasses.dataclass(frozen=True, slots=True)
class Stale:
    """An entry without a match; `unpinned_text` is a violation without its pinned text."""

    entry: Deviation
    unpinned_text: str = ""

    @property
    def reason(self) -> str:
        """The reason why the entry matches nothing, and what to do about it."""
        entry = self.entry
        if self.unpinned_text:
            shown_text = textwrap.shorten(self.unpinned_text, 160, placeholder=" …")
            return (
                f"the pinned text {entry.pinned!r} matches no finding, such as: "
                f"{shown_text}; correct pinned, or remove the entry"
            )
        if entry.rule.startswith(_OF_SCENARIO):
            return "it was not found in any of its scenarios; remove the entry"
        return "the rule passed wherever it ran; remove the entry"


@dataclasses.dataclass(frozen=True, slots=True)
class Staleness:
    """Entries of a baseline that one run found stale, and those that it could not check."""

    stale_entries: tuple[Stale, ...]
    unchecked_entries: tuple[Deviation, ...]


def staleness(
    entries: Sequence[Deviation],
    rows: dict[str, list[Row]],
    findings: dict[str, list[Finding]],
    completed: set[str],
    scenarios_for: Callable[[Deviation], Collection[str]],
) -> Staleness:
    """Return the stale entries, and those that could not be checked; flaky ones are never stale.

    `rows` and `findings` are by scenario; `completed` are the scenarios that ran to the end;
    `scenarios_for` returns the scenarios that an entry may be about, played or not. An entry is
    stale when all its scenarios ran to the end and its rule got a witness but no violation that it
    matches.
    """
    stale: list[Stale] = []
    unchecked: list[Deviation] = []
    for entry in entries:
        concerned = {name for name in scenarios_for(entry) if is_about(name, entry)}
        rule_rows = [
            row for name in concerned for row in rows.get(name, ()) if row.rule == entry.rule
        ]
        texts = [_text(row) for row in rule_rows if row.verdict in (Verdict.FAIL, Verdict.KNOWN)]
        texts += [
            finding.message
            for name in concerned
            for finding in findings.get(name, ())
            if finding.id == entry.rule
        ]
        if entry.flaky or any(entry.pinned in text for text in texts):
            continue
        # An entry about a scenario's own verdict needs no witness.
        judged = bool(rule_rows) or entry.rule.startswith(_OF_SCENARIO)
        if concerned and concerned <= completed and judged:
            stale.append(Stale(entry, min(texts, default="")))
        else:
            unchecked.append(entry)
    return Staleness(tuple(stale), tuple(unchecked))
