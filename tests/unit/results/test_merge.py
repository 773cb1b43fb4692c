"""Merge of outcomes into one report: the order makes no difference, the gravest verdict counts."""

from __future__ import annotations

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from harness.judge.verdict import Level, Row, Verdict
from harness.report.json_form import to_plain
from harness.report.markdown import markdown
from harness.report.requirements import judged_requirements
from harness.report.results.outcome import (
    Finding,
    ScenarioOutcome,
    finding_from_plain,
    finding_to_plain,
)
from harness.report.results.report import Report, RuleResult
from harness.report.terminal import rule_line, summary
from tests.unit.results.outcomes import (
    BOOK,
    LAST,
    ONCE,
    RULES,
    entry,
    failed,
    outcome,
    passed,
    report_of,
)

ROWS = st.lists(
    st.builds(
        Row,
        rule=st.sampled_from(sorted(RULES)[:4]),
        subject=st.sampled_from(["turn a", "turn b"]),
        verdict=st.sampled_from([Verdict.PASS, Verdict.FAIL, Verdict.KNOWN, Verdict.ERROR]),
        level=st.sampled_from(list(Level)),
        actual=st.sampled_from(["x", "y"]),
    ),
    max_size=4,
)
FINDINGS = st.lists(
    st.builds(
        Finding,
        id=st.sampled_from(["setup.not-started", "hygiene.ignores-term", "scenario.crash"]),
        message=st.sampled_from(["one", "two", "three"]),
        level=st.sampled_from(list(Level)),
    ),
    max_size=3,
)
OUTCOMES = st.lists(st.tuples(ROWS, FINDINGS), max_size=5).map(
    lambda made: [
        outcome(f"s{index}", *rows, findings=findings)
        for index, (rows, findings) in enumerate(made)
    ]
)


def rule(report: Report, name: str) -> RuleResult:
    return next(one for one in report.rules if one.id == name)


@given(OUTCOMES, FINDINGS, st.randoms(use_true_random=False))
def test_the_order_of_outcomes_and_findings_makes_no_difference(
    outcomes: list[ScenarioOutcome], loose: list[Finding], chance: random.Random
) -> None:
    entries = (entry(sorted(RULES)[0]), entry("hygiene.ignores-term"))
    straight = report_of(*outcomes, loose=tuple(loose), entries=entries)
    chance.shuffle(outcomes)
    chance.shuffle(loose)
    shuffled = report_of(*outcomes, loose=tuple(loose), entries=entries)
    assert to_plain(shuffled) == to_plain(straight)


@given(OUTCOMES)
def test_outcomes_cross_to_another_process_and_back(outcomes: list[ScenarioOutcome]) -> None:
    for one in outcomes:
        assert ScenarioOutcome.from_plain(one.to_plain()) == one
        for finding in one.findings:
            assert finding_from_plain(finding_to_plain(finding)) == finding


def test_the_gravest_verdict_speaks_for_a_rule() -> None:
    report = report_of(outcome("a", passed(ONCE)), outcome("b", failed(ONCE), passed(LAST)))
    found = rule(report, ONCE)
    assert (found.verdict, found.witnesses, found.subjects) == (Verdict.FAIL, 1, 2)
    assert found.scenarios == ["a", "b"]
    assert [proof.scenario for proof in found.proofs] == ["b"]
    assert rule(report, LAST).verdict is Verdict.PASS
    assert report.red


def test_rule_that_nobody_exercised_is_not_passed() -> None:
    report = report_of(outcome("a", passed(ONCE)))
    found = rule(report, LAST)
    assert found.verdict is Verdict.NOT_EXERCISED
    assert found.reason == "no scenario of this run gave it anything to judge"


def test_rule_whose_need_is_not_declared_does_not_apply() -> None:
    report = report_of(outcome("a"), capabilities=["core"])
    needy = [one for one in RULES.values() if set(one.needs) - {"core"}]
    assert needy
    for one in needy:
        assert rule(report, one.id).verdict is Verdict.NOT_APPLICABLE
        assert rule(report, one.id).reason.startswith("the target does not declare ")


def test_should_findings_are_red_only_when_strict() -> None:
    outcomes = (outcome("a", failed(ONCE, level=Level.SHOULD)),)
    assert not report_of(*outcomes).red
    assert report_of(*outcomes, strict=True).red


def test_info_findings_are_never_red_and_do_not_fail_a_requirement() -> None:
    outcomes = (outcome("a", passed(ONCE), failed(ONCE, level=Level.INFO)),)
    report = report_of(*outcomes, strict=True)
    assert not report.red
    assert "FAIL" not in report.requirements.values()


def test_rule_that_broke_is_red_whatever_its_level() -> None:
    broken = Row(ONCE, "turn u", Verdict.ERROR, Level.INFO, actual="Traceback")
    assert report_of(outcome("a", broken)).red


def test_one_setup_failure_met_by_all_workers_is_one_issue() -> None:
    finding = Finding("setup.not-started", "exit status 3")
    report = report_of(*(outcome(name, findings=[finding]) for name in "abc"), loose=(finding,))
    assert [(issue.id, issue.message) for issue in report.issues] == [
        ("setup.not-started", "exit status 3")
    ]
    assert report.red


def test_known_finding_does_not_hide_another_of_its_id() -> None:
    findings = (Finding("hygiene.x", "one"), Finding("hygiene.x", "two"))
    for loose in (findings, findings[::-1]):
        report = report_of(outcome("a"), loose=loose, entries=(entry("hygiene.x", pinned="one"),))
        assert [(issue.message, issue.known) for issue in report.issues] == [("two", "")]
        assert report.red


def test_requirement_is_partly_judged_while_a_rule_of_it_is_idle() -> None:
    everything = report_of(outcome("a", *(passed(name) for name in RULES)))
    assert set(everything.requirements.values()) == {"PASS"}
    several = next(
        name
        for name in RULES
        if "PARTLY" in report_of(outcome("a", passed(name))).requirements.values()
    )
    report = report_of(outcome("a", passed(several), failed(several, "other")))
    assert "FAIL" in report.requirements.values()


def test_finding_that_no_scenario_owns_can_be_known() -> None:
    finding = Finding("hygiene.ignores-term", "it had to be killed")
    assert report_of(outcome("a"), loose=(finding,)).red
    entries = (entry("hygiene.ignores-term", reason="as it is"),)
    report = report_of(outcome("a"), loose=(finding,), entries=entries)
    assert [issue.known for issue in report.issues] == ["as it is"]
    assert not report.red
    elsewhere = (entry("hygiene.ignores-term", scenario="turns/*"),)
    assert report_of(outcome("a"), loose=(finding,), entries=elsewhere).red


def requirement_on(name: str, *rows: Row) -> str:
    return report_of(outcome("a", *rows)).requirements[name]


def test_a_requirement_of_our_own_choice_reads_info_and_never_fail() -> None:
    finding = failed("model.effort-passed", level=Level.INFO)
    assert requirement_on("turn-start.effort-passed", finding) == "INFO"
    assert (
        requirement_on("turn-start.effort-passed", finding, passed("model.effort-passed")) == "INFO"
    )
    assert requirement_on("turn-start.effort-passed", passed("model.effort-passed")) == "PASS"


def test_an_info_finding_alone_fails_no_requirement() -> None:
    cut = failed("item.completes", level=Level.INFO, clauses=("item.completed-when-cut",))
    assert requirement_on("item.completed-when-cut", cut) == "INFO"
    assert requirement_on("event.item-completed-when", cut) == "NOT_EXERCISED"
    plain = failed("item.completes", level=Level.INFO)
    assert requirement_on("event.item-completed-when", plain) == "NOT_EXERCISED"


def test_a_violation_fails_only_the_requirements_that_it_names() -> None:
    named = failed("turn.error-iff-failed", clauses=("turn.error-only-failed",))
    assert requirement_on("turn.error-only-failed", named) == "FAIL"
    assert requirement_on("errors.failed-turn", named) == "NOT_EXERCISED"
    passing = passed("turn.error-iff-failed")
    assert requirement_on("errors.failed-turn", named, passing) == "PASS"
    everything = failed("turn.error-iff-failed")
    assert requirement_on("errors.failed-turn", everything, passing) == "FAIL"


def test_a_rule_tells_in_how_many_scenarios_it_was_broken_and_each_subject_once() -> None:
    made = [outcome(name, failed(ONCE, "the method a")) for name in ("a", "b", "c")]
    made.append(outcome("d", passed(ONCE)))
    report = report_of(*made)
    (rule,) = [one for one in report.rules if one.id == ONCE]
    assert rule.broken_in == ["a", "b", "c"]
    assert len(rule.proofs) == 1
    assert rule_line(rule) == f"FAIL   {ONCE} in a: two of them (in 3 scenarios)"


def test_requirements_that_nothing_exercised_are_not_counted_as_judged() -> None:
    report = report_of(outcome("a", passed(ONCE)))
    (line,) = [one for one in summary(report, BOOK) if one.startswith("requirements: ")]
    bound = {one.id for one in BOOK.requirements if one.clause.bound != "client"}
    mine = [verdict for name, verdict in report.requirements.items() if name in bound]
    idle = mine.count("NOT_EXERCISED")
    assert idle > 200
    clients = len(BOOK.requirements) - len(bound)
    assert line.startswith(f"requirements: {len(mine) - idle} of {len(bound)} judged (1 PASS)")
    assert line.endswith(f"; not counted: {clients} that bind only clients")
    judged, total, passing, *others, more = map(int, re.findall(r"\d+", line))
    assert (judged, judged + sum(others), more) == (passing, total, clients)


def test_requirements_of_clients_never_count_as_judged_of_the_server() -> None:
    alone = [one.id for one in BOOK.requirements if one.clause.bound == "client"]
    report = report_of(outcome("a", passed(ONCE)))
    judged = judged_requirements(report, BOOK)
    for name in alone:
        report.requirements[name] = "PASS"
    assert judged_requirements(report, BOOK) == judged
    assert judged.client_only == len(alone) > 30
    page = markdown(report, BOOK, "0")
    assert f"| requirements | {judged.words()} |" in page
    summary_of = to_plain(report)["summary"]["requirements"]
    counted = {
        "judged": judged.judged_count,
        "of": judged.total,
        "of_other_surfaces": judged.other_surfaces,
        "without_rule": judged.without_rule,
        "of_clients": judged.client_only,
    }
    assert summary_of == {**counted, **judged.counts}


def test_lesser_finding_hides_no_graver_one_of_its_subject() -> None:
    should, must = failed(ONCE, level=Level.SHOULD), failed(ONCE, level=Level.MUST)
    for first, second in ((should, must), (must, should)):
        report = report_of(outcome("a", first), outcome("b", second))
        result = next(rule for rule in report.rules if rule.id == ONCE)
        assert [proof.row for proof in result.proofs] == [must]
        assert report.red
