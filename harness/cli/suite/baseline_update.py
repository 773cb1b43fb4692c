"""`--update-baseline`: write the findings of a run into its baseline file, and judge by it."""

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from harness.client.target.profile import Deviation
from harness.errors import UsageError
from harness.judge.verdict import Level
from harness.report.report_file import write_problem
from harness.report.results import baseline_update, expiry
from harness.report.results.baseline import load_baseline
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome
from harness.report.results.report import Report

_STALE = "baseline.stale"


class BaselineUpdate:
    """The update of one run's baseline file; `told` is its message to the user.

    Raises `UsageError` for options that do not fit.
    """

    def __init__(self, option: argparse.Namespace) -> None:
        self.path = Path(option.baseline)
        self.told = ""
        self._reason = option.reason.strip()
        self._expires = _day(option.expires)
        if not option.baseline:
            raise UsageError("--update-baseline needs --baseline FILE, the file to write")
        if not self._reason:
            raise UsageError(
                "--update-baseline needs --reason 'why this is accepted'; every report shows it"
            )
        problem = write_problem(option.baseline)
        if problem:
            raise UsageError(f"--baseline {option.baseline}: {problem}")
        self._check_form()

    @property
    def begins(self) -> bool:
        """Return whether the file does not exist yet."""
        return not self.path.exists()

    def write(
        self,
        report: Report,
        outcomes: Sequence[ScenarioOutcome],
        races: Sequence[RaceOutcome],
        loose: Sequence[Finding],
        *,
        only: Sequence[str] = (),
    ) -> list[Deviation]:
        """Write the file, and return its new entries.

        Stale and expired entries are removed; `only` are the rules that the run was limited to,
        empty for all. Raises `UsageError` if it cannot be written.
        """
        text = "" if self.begins else self.path.read_bytes().decode("utf-8")
        baseline = None if self.begins else load_baseline(self.path)
        levels = (Level.MUST, Level.SHOULD) if report.strict else (Level.MUST,)
        placements = [placement for race in races for placement in race.placements]
        raced = [finding for race in races for finding in race.findings]
        added = baseline_update.new_entries(
            [*outcomes, *placements],
            [*loose, *raced],
            reason=self._reason,
            levels=levels,
            expires=self._expires,
        )
        stale = {issue.where for issue in report.issues if issue.id == _STALE and issue.where}
        entries = () if baseline is None else baseline.entries
        removed = [
            index
            for index, entry in enumerate(entries)
            if (baseline is not None and str(baseline.place(index, "rule")) in stale)
            or (not expiry.is_alive(entry, expiry.today()) and (not only or entry.rule in only))
        ]
        change = baseline_update.Change(tuple(added), tuple(removed))
        if not change and (report.red or not self.begins):
            self.told = f"baseline: {self.path} needs no change"
            return []
        new = baseline_update.apply_change(text, baseline, change) or baseline_update.NO_ENTRIES
        try:
            baseline_update.replace_file(self.path, new)
        except OSError as error:
            raise UsageError(f"--baseline {self.path}: cannot be written: {error}") from error
        self.told = (
            f"baseline: {self.path}: {_entries(len(added))} added, {len(removed)} taken out; "
            "read what is new in it before you commit it"
            if change
            else f"baseline: {self.path}: written without entries, since nothing new was found"
        )
        return added

    def _check_form(self) -> None:
        """Raise now the error of a file that could not be edited at the end of the run."""
        if not self.begins:
            baseline = load_baseline(self.path)
            removal = baseline_update.Change((), tuple(range(len(baseline.entries))))
            text = self.path.read_bytes().decode("utf-8")
            baseline_update.apply_change(text, baseline, removal)


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"


def _day(text: str) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--expires {text}: give a day such as 2027-01-31") from None
