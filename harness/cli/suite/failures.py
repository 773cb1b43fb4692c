"""Support of pytest's `-x`, `--lf`, `--ff` and `--sw` for rules that a scenario breaks.

A rule is reported after the last scenario, by a report without an item. Stopping at it, or playing
it again, means the scenario that broke it.
"""

from typing import Any

import pytest

from harness.console import READER_GONE_STATUS, reader_is_gone
from harness.judge.verdict import Level, Row, Verdict
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome

SYNTHETIC = ("rules::", "findings::")
LAST_FAILED, STEPWISE = "cache/lastfailed", "cache/stepwise"


class Failing:
    """Record of one run's failures, for pytest's options. `session` is set when it begins."""

    session: pytest.Session

    def __init__(self, config: pytest.Config, *, strict: bool) -> None:
        self._config = config
        self._levels = (Level.MUST, Level.SHOULD) if strict else (Level.MUST,)
        self._rules: set[str] = set()
        self._breaking: dict[str, None] = {}
        self._first_bad = ""
        self._total = 0

    @property
    def distributes(self) -> bool:
        """Return whether this process distributes items to workers."""
        return self._dist is not None

    @property
    def failed_count(self) -> int:
        """Return the number of failed reports so far, of tests and of collecting."""
        return self.session.testsfailed

    @property
    def _dist(self) -> Any:
        return self._config.pluginmanager.get_plugin("dsession")

    def stop(self, reason: str) -> None:
        """End the run after the current scenario."""
        self.session.shouldfail = reason
        self.interrupt(reason)

    def interrupt(self, reason: str) -> None:
        """End the run if workers play it; do nothing without workers."""
        if self._dist is not None:
            self._dist.shouldstop = reason

    def count(self, reports: int, *, again: bool = False) -> None:
        """Add the number of reports about rules to that of the items, for the progress column.

        Called from the first report on, so that the percentage never falls; `again` if a replaced
        worker may have been counted twice.
        """
        if not self._total:
            self._total = self.session.testscollected + reports
            self.session.testscollected = self._total
        elif again:
            self.session.testscollected = max(self.session.testscollected, self._total)

    def watch(self, report: pytest.TestReport) -> None:
        """Note the first failed report, and stop if nobody reads the output any more."""
        if reader_is_gone() and not self.session.shouldfail:
            self.stop("nobody reads the output any more")
        if report.failed and not report.nodeid.startswith(SYNTHETIC):
            self._note_failure(report.nodeid)

    def note_outcome(
        self, report: pytest.TestReport, outcome: ScenarioOutcome | RaceOutcome
    ) -> None:
        """Note the rules that a scenario or a race broke; stop the run if an option says so."""
        plays = outcome.placements if isinstance(outcome, RaceOutcome) else [outcome]
        broken = {row.rule for play in plays for row in play.rows if self._counts(row)}
        if not broken:
            return
        self._rules |= broken
        self._breaking[report.nodeid] = None
        self._note_failure(report.nodeid)
        option: Any = self._config.option
        failures = self.session.testsfailed + len(self._rules) + report.failed
        if option.maxfail and failures >= option.maxfail:
            self.stop(f"stopping after {failures} failures")
        elif getattr(option, "stepwise", False):
            self.session.shouldstop = "A rule failed, continuing from this scenario next run."

    def _note_failure(self, nodeid: str) -> None:
        self._first_bad = self._first_bad or nodeid

    def _counts(self, row: Row) -> bool:
        broken = row.verdict is Verdict.FAIL and row.level in self._levels
        return broken or row.verdict is Verdict.ERROR

    def status(self, *, red: bool) -> int | None:
        """Return the exit status of this run, None for pytest's own."""
        if reader_is_gone():
            return READER_GONE_STATUS
        if red and self._config.option.maxfail and self.distributes:
            # xdist stops workers as by Ctrl-C, but the reason is a failure.
            return int(pytest.ExitCode.TESTS_FAILED)
        return None

    def remember(self) -> None:
        """Store for the next run the scenarios that broke a rule, in place of the rule."""
        cache: Any = getattr(self._config, "cache", None)
        if cache is None or getattr(self._config.option, "cacheshow", None):
            return
        failed: dict[str, bool] = cache.get(LAST_FAILED, {})
        remembered = {name: True for name in failed if not name.startswith(SYNTHETIC)}
        remembered |= dict.fromkeys(self._breaking, True)
        if remembered != failed:
            cache.set(LAST_FAILED, remembered)
        step: dict[str, Any] | None = cache.get(STEPWISE, None)
        last: str = (step or {}).get("last_failed") or ""
        if step and (last.startswith(SYNTHETIC) or self._breaking):
            cache.set(STEPWISE, {**step, "last_failed": self._first_bad or None})
