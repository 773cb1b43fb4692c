"""Conditions under which a report is red."""

from __future__ import annotations

import pytest

from harness.judge.verdict import Level, Row, Verdict
from harness.report.results.report import Issue, Proof, Report, RuleResult, ScenarioResult, is_red


def rule(*rows: tuple[Verdict, Level], verdict: Verdict = Verdict.FAIL) -> RuleResult:
    proofs = [Proof("s", Row("a.b", "turn u", one, level), "", "", "") for one, level in rows]
    return RuleResult("a.b", "Title", Level.MUST, verdict, proofs=proofs)


def scenario(verdict: Verdict) -> ScenarioResult:
    return ScenarioResult("s", "", "", verdict, "", 0, "")


def test_empty_report_is_not_red() -> None:
    assert not Report("p", "cmd").red


@pytest.mark.parametrize("verdict", list(Verdict))
def test_scenarios_verdict_makes_it_red_if_it_failed_or_broke(verdict: Verdict) -> None:
    red = verdict in (Verdict.FAIL, Verdict.ERROR)
    assert Report("p", "cmd", scenarios=[scenario(verdict)]).red is red


@pytest.mark.parametrize(
    ("level", "strict", "red"),
    [
        (Level.MUST, False, True),
        (Level.SHOULD, False, False),
        (Level.SHOULD, True, True),
        (Level.INFO, True, False),
    ],
)
def test_violation_makes_it_red_by_its_level(level: Level, strict: bool, red: bool) -> None:
    assert is_red(rule((Verdict.FAIL, level)), strict=strict) is red
    assert Report("p", "cmd", rules=[rule((Verdict.FAIL, level))], strict=strict).red is red


def test_known_violation_beside_a_lesser_one_is_not_red() -> None:
    one = rule((Verdict.KNOWN, Level.MUST), (Verdict.FAIL, Level.INFO))
    assert not is_red(one)


def test_rule_that_broke_is_red() -> None:
    assert is_red(rule((Verdict.ERROR, Level.INFO), verdict=Verdict.ERROR))


def test_rule_that_is_known_or_idle_is_not_red() -> None:
    for verdict in (Verdict.KNOWN, Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE, Verdict.PASS):
        assert not is_red(rule(verdict=verdict), strict=True)


@pytest.mark.parametrize(
    ("issue", "red"),
    [
        (Issue("setup.x", "m", Level.MUST), True),
        (Issue("hygiene.x", "m", Level.INFO), False),
        (Issue("hygiene.x", "m", Level.MUST, "as it is"), False),
    ],
)
def test_issue_makes_it_red_if_it_is_must_and_not_known(issue: Issue, red: bool) -> None:
    assert Report("p", "cmd", issues=[issue]).red is red


def test_counts_are_by_verdict_and_level() -> None:
    report = Report(
        "p", "cmd", rules=[rule((Verdict.FAIL, Level.MUST)), rule(verdict=Verdict.PASS)]
    )
    assert report.counts()[Verdict.FAIL] == 1
    assert report.counts(Level.SHOULD)[Verdict.PASS] == 0
