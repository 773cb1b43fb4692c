"""A baseline that updates itself: the entries that a run adds to it and removes from it."""

import json
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from harness.client.target.profile import Deviation
from harness.errors import UsageError
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.findings import accepted_ids
from harness.report.results.baseline import Baseline
from harness.report.results.outcome import LEAKS, UNSTEADY, Finding, ScenarioOutcome

# A rule that is broken in more scenarios gets one entry for all of them. A scenario's own finding
# never does: each has a cause of its own, and one entry would accept all later ones too.
MAX_SCENARIOS_NAMED: Final = 8
_OF_SCENARIO: Final = "scenario."
EVERYWHERE: Final = "*"
# What a file without entries says: a later run reads it.
NO_ENTRIES: Final = "# Known deviations: none yet.\n"
_HEADER: Final = re.compile(r"\s*\[\[\s*deviations\s*\]\]\s*(?:#.*)?")
# Two findings with one meaning: a repetition of the scenario differed.
_ABOUT_REPEATING: Final = (LEAKS, UNSTEADY)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a baseline file: entries to add, and the indexes of those to remove."""

    entries_added: tuple[Deviation, ...]
    indexes_removed: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entries_added or self.indexes_removed)


def new_entries(
    outcomes: Iterable[ScenarioOutcome],
    loose: Iterable[Finding],
    *,
    reason: str,
    levels: Collection[Level],
    expires: date | None = None,
) -> list[Deviation]:
    """Return an entry for each rule or finding in each scenario where it counts and is not known.

    `outcomes` are scenarios and placements of races, `levels` those that count. Findings that no
    baseline accepts get none, nor does a failed set-up, because of which nothing was judged.
    """
    broken: dict[str, dict[str, bool]] = {}
    for outcome in outcomes:
        findings = [finding for finding in outcome.findings if _is_recordable(finding)]
        rows = {row.rule for row in outcome.rows if _is_counted(row, levels)}
        unsteady = any(finding.id in _ABOUT_REPEATING for finding in outcome.findings)
        for name in sorted({*rows, *(finding.id for finding in findings)}):
            unsteady_by_scenario = broken.setdefault(name, {})
            unsteady_by_scenario[outcome.id] = (
                unsteady_by_scenario.get(outcome.id, False) or unsteady
            )
    for finding in loose:
        if _is_recordable(finding):
            broken[finding.id] = {EVERYWHERE: False}
    new: list[Deviation] = []
    for rule, scenarios in sorted(broken.items()):
        if len(scenarios) > MAX_SCENARIOS_NAMED and not rule.startswith(_OF_SCENARIO):
            scenarios = {EVERYWHERE: any(scenarios.values())}
        new += [
            Deviation(rule=rule, scenario=name, reason=reason, flaky=flaky, expires=expires)
            for name, flaky in sorted(scenarios.items())
        ]
    return new


def _is_counted(row: Row, levels: Collection[Level]) -> bool:
    return row.verdict is Verdict.FAIL and row.level in levels


def _is_recordable(finding: Finding) -> bool:
    accepted = finding.id in accepted_ids() and not finding.id.startswith("setup.")
    return finding.counts and accepted


def apply_change(text: str, baseline: Baseline | None, change: Change) -> str:
    """Return the text of the file after the change.

    Raises `UsageError` if an entry to remove has no line `[[deviations]]` of its own.

    An entry is removed with the comments inside of it; those above it stay, since they may be about
    all that follows.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines()
    if change.indexes_removed and baseline is not None:
        lines = _without_entries(lines, baseline, change.indexes_removed)
    while lines and not lines[-1].strip():
        lines.pop()
    for entry in change.entries_added:
        lines += [""] if lines else []
        lines += entry_lines(entry)
    return end.join([*lines, ""]) if lines else ""


def entry_lines(entry: Deviation) -> list[str]:
    """Return an entry as the lines of a file; defaults are left out."""
    lines = ["[[deviations]]", f"rule = {_quote(entry.rule)}"]
    if entry.scenario != EVERYWHERE:
        lines.append(f"scenario = {_quote(entry.scenario)}")
    lines.append(f"reason = {_quote(entry.reason)}")
    lines += [f"pinned = {_quote(entry.pinned)}"] if entry.pinned else []
    lines += ["flaky = true"] if entry.flaky else []
    lines += [f"expires = {entry.expires}"] if entry.expires else []
    return lines


def _quote(text: str) -> str:
    # A JSON string is a TOML string, except that TOML requires this character to be escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _without_entries(
    lines: Sequence[str], baseline: Baseline, removed: Collection[int]
) -> list[str]:
    begins = [
        baseline.toml.values["deviations", at].line - 1 for at in range(len(baseline.entries))
    ]
    gone: set[int] = set()
    for index in removed:
        first = begins[index]
        if not _HEADER.fullmatch(lines[first]):
            place = baseline.toml.values["deviations", index]
            raise UsageError(f"{place}: write each entry below a line [[deviations]] of its own")
        last = begins[index + 1] if index + 1 < len(begins) else len(lines)
        body = range(first, last)
        written = [
            number for number in body if lines[number].strip() and not _is_comment(lines[number])
        ]
        after = written[-1] + 1
        while after < len(lines) and not lines[after].strip():
            after += 1
        gone |= set(range(first, after))
    return [line for number, line in enumerate(lines) if number not in gone]


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def replace_file(path: Path, text: str) -> None:
    """Replace a file atomically. Raises `OSError`; the file then keeps its former text."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.resolve().parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, mode)
        os.replace(name, path.resolve())
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
