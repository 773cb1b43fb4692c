"""Output of pytest for each rule: a letter, or with -v a line.

A run of one scenario counts two hundred rules, most of them without findings: without -v only the
others are shown.
"""

from typing import Any

import pytest

from harness.judge.verdict import Verdict
from harness.report.results.report import RuleResult, gravest_level, is_red

_SILENT = (Verdict.PASS, Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE)
_LEVEL, _HIDDEN = "harness_level", "harness_hidden"


class RuleLines:
    """Pytest plugin that says how to print the reports marked by `mark`."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @property
    def every(self) -> bool:
        """Return whether each rule is shown."""
        return self._config.option.verbose > 0

    def shows(self, rule: RuleResult) -> bool:
        """Return whether the rule is shown."""
        return self.every or rule.verdict not in _SILENT

    def mark(self, report: pytest.TestReport, rule: RuleResult, *, strict: bool) -> None:
        """Note in a rule's report how it is shown."""
        if not self.shows(rule):
            setattr(report, _HIDDEN, True)
        elif rule.verdict is Verdict.FAIL and not is_red(rule, strict=strict):
            setattr(report, _LEVEL, str(gravest_level(rule)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, Any] | None:
        """Return no text for a hidden rule, the level for a warning; None for other reports."""
        if getattr(report, _HIDDEN, False):
            return report.outcome, "", ""
        level = getattr(report, _LEVEL, "")
        if level:
            return report.outcome, "w", (level, {"yellow": True})
        return None
