"""Output of a run's report to pytest and the user."""

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from harness.cli.suite.rule_lines import RuleLines
from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.book import Book
from harness.report.results.report import Issue, Report, RuleResult, is_red
from harness.report.story import issue_story, rule_story
from harness.report.terminal import rule_line, summary


def emit(report: Report, session: pytest.Session, book: Book, lines: RuleLines) -> None:
    """Report each rule and each finding as a test, so that pytest counts it.

    If every rule is shown, they are already included in the number of collected items, for the
    progress column; findings are not. Minor findings are pytest warnings, except in `harness run`,
    which prints them in its own section.
    """
    hook = session.config.hook
    warns = not session.config.option.harness_run
    if not lines.every and any(map(lines.shows, report.rules)):
        hook.pytest_runtest_logstart(nodeid="rules::all", location=("rules", 0, "all"))
    for rule in report.rules:
        story = rule_story(rule, book, report, verbose=lines.every)
        rule_report = _rule_report(rule, story, session.config.rootpath, strict=report.strict)
        lines.mark(rule_report, rule, strict=report.strict)
        session.testscollected += lines.shows(rule) and not lines.every
        hook.pytest_runtest_logreport(report=rule_report)
        if warns and rule.verdict is Verdict.FAIL and not is_red(rule, strict=report.strict):
            _warn(session.config, f"rules::{rule.id}", rule_line(rule))
    for issue in report.issues:
        if issue.level is Level.MUST:
            session.testscollected += 1
            hook.pytest_runtest_logreport(report=_issue_report(issue))
        elif warns:
            _warn(session.config, f"findings::{issue.id}", issue.message)


def print_summary(
    report: Report, terminal: Any, book: Book, note: str = "", *, names: bool, is_whole: bool
) -> None:
    """Print the notes and the verdict in a few lines by pytest's terminal reporter.

    `names` and `is_whole` as in `summary`.
    """
    terminal.section(f"conformance of {report.target}")
    if note:
        terminal.write_line(note)
    for line in summary(report, book, names=names, whole=is_whole):
        terminal.write_line(line)


def _rule_report(rule: RuleResult, story: str, root: Path, *, strict: bool) -> pytest.TestReport:
    outcome: Any = "passed"
    longrepr: Any = None
    if is_red(rule, strict=strict):
        outcome, longrepr = "failed", story
    elif rule.verdict is Verdict.KNOWN:
        outcome = "skipped"
    elif rule.verdict in (Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE):
        outcome, longrepr = "skipped", ("rules", 0, f"Skipped: {rule.verdict}: {rule.reason}")
    report = _report(f"rules::{rule.id}", outcome, longrepr)
    if outcome == "failed" and rule.proofs:
        report.location = (os.path.relpath(rule.proofs[0].path, root), 0, "")
    if rule.verdict is Verdict.KNOWN:
        reasons = dict.fromkeys(p.reason for p in rule.proofs if p.reason)
        report.wasxfail = "; ".join(reasons)
    return report


def _issue_report(issue: Issue) -> pytest.TestReport:
    story = issue_story(issue)
    report = _report(f"findings::{issue.id}", "skipped" if issue.known else "failed", story)
    if issue.known:
        report.wasxfail = issue.known
    return report


class Synthetic(pytest.TestReport):
    """A report without an item: a rule, or a finding of the run."""

    @property
    def head_line(self) -> str:
        """Return the id alone, as the heading of its story."""
        return self.nodeid.split("::", 1)[1]


def _report(nodeid: str, outcome: Any, longrepr: Any) -> pytest.TestReport:
    return Synthetic(
        nodeid=nodeid,
        # An empty domain, since pytest would show the dots of an id in it as colons.
        location=(nodeid.split("::", 1)[0], 0, ""),
        keywords={},
        outcome=outcome,
        longrepr=longrepr,
        when="call",
    )


def _warn(config: pytest.Config, nodeid: str, message: str) -> None:
    warning = warnings.WarningMessage(
        pytest.PytestWarning(message), pytest.PytestWarning, nodeid, 0
    )
    config.hook.pytest_warning_recorded.call_historic(
        kwargs={
            "warning_message": warning,
            "nodeid": nodeid,
            "when": "runtest",
            "location": None,
        }
    )
