"""A baseline that writes itself: which entries a run adds to it, and which it takes out."""

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

# A rule that is broken in more scenarios gets one entry for all of them.
MAX_SCENARIOS_NAMED: Final = 8
EVERYWHERE: Final = "*"
_HEADER: Final = re.compile(r"\s*\[\[\s*deviations\s*\]\]\s*(?:#.*)?")
# The same thing under another name: that a scenario gave not the same again.
_ABOUT_REPEATING: Final = (LEAKS, UNSTEADY)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a baseline file: entries to add, and the places of those to take out."""

    added: tuple[Deviation, ...]
    removed: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def new_entries(
    outcomes: Iterable[ScenarioOutcome],
    loose: Iterable[Finding],
    *,
    reason: str,
    levels: Collection[Level],
    expires: date | None = None,
) -> list[Deviation]:
    """An entry for each rule, or finding, and scenario that counts and is not known.

    `outcomes` are scenarios and placements of races, `levels` those that count. What no baseline
    accepts, and a set-up that failed, has none: nothing was judged because of it.
    """
    broken: dict[str, dict[str, bool]] = {}
    for outcome in outcomes:
        findings = [one for one in outcome.findings if _recordable(one)]
        rows = {row.rule for row in outcome.rows if _counts(row, levels)}
        unsteady = any(one.id in _ABOUT_REPEATING for one in outcome.findings)
        for name in sorted({*rows, *(one.id for one in findings)}):
            seen = broken.setdefault(name, {})
            seen[outcome.id] = seen.get(outcome.id, False) or unsteady
    for one in loose:
        if _recordable(one):
            broken[one.id] = {EVERYWHERE: False}
    found: list[Deviation] = []
    for rule, scenarios in sorted(broken.items()):
        if len(scenarios) > MAX_SCENARIOS_NAMED:
            scenarios = {EVERYWHERE: any(scenarios.values())}
        found += [
            Deviation(rule=rule, scenario=name, reason=reason, flaky=flaky, expires=expires)
            for name, flaky in sorted(scenarios.items())
        ]
    return found


def _counts(row: Row, levels: Collection[Level]) -> bool:
    return row.verdict is Verdict.FAIL and row.level in levels


def _recordable(finding: Finding) -> bool:
    accepted = finding.id in accepted_ids() and not finding.id.startswith("setup.")
    return finding.counts and accepted


def changed_text(text: str, baseline: Baseline | None, change: Change) -> str:
    """The text of the file after the change. Raises `UsageError` where it has another form.

    An entry goes with the comments inside of it; those above it stay, since they may be about all
    that follows.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines()
    if change.removed and baseline is not None:
        lines = _without(lines, baseline, change.removed)
    while lines and not lines[-1].strip():
        lines.pop()
    for entry in change.added:
        lines += [""] if lines else []
        lines += entry_lines(entry)
    return end.join([*lines, ""]) if lines else ""


def entry_lines(entry: Deviation) -> list[str]:
    """An entry as it is written in a file; what has its default is left out."""
    lines = ["[[deviations]]", f"rule = {_quoted(entry.rule)}"]
    if entry.scenario != EVERYWHERE:
        lines.append(f"scenario = {_quoted(entry.scenario)}")
    lines.append(f"reason = {_quoted(entry.reason)}")
    lines += ["flaky = true"] if entry.flaky else []
    lines += [f"expires = {entry.expires}"] if entry.expires else []
    return lines


def _quoted(text: str) -> str:
    # A text of JSON is one of TOML, but for this character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _without(lines: Sequence[str], baseline: Baseline, removed: Collection[int]) -> list[str]:
    begins = [
        baseline.toml.values["deviations", at].line - 1 for at in range(len(baseline.entries))
    ]
    gone: set[int] = set()
    for at in removed:
        first = begins[at]
        if not _HEADER.fullmatch(lines[first]):
            where = baseline.toml.values["deviations", at]
            raise UsageError(f"{where}: write each entry below a line [[deviations]] of its own")
        last = begins[at + 1] if at + 1 < len(begins) else len(lines)
        body = range(first, last)
        written = [one for one in body if lines[one].strip() and not _is_comment(lines[one])]
        after = written[-1] + 1
        while after < len(lines) and not lines[after].strip():
            after += 1
        gone |= set(range(first, after))
    return [line for number, line in enumerate(lines) if number not in gone]


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def replace_file(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises `OSError`."""
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
