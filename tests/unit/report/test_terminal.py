"""The summary in a terminal: failures, other findings, and unjudged requirements."""

import pytest

from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.json_form import from_plain, to_plain
from harness.report.results.report import Issue, Proof, Report, RuleResult, ScenarioResult
from harness.report.results.server_starts import ServerStart, StartReason
from harness.report.terminal import summary


def lines(report: Report, *, names: bool = False, whole: bool = False) -> list[str]:
    return list(summary(report, load_book(), names=names, whole=whole))


def failed(*levels: Level, rule: Level = Level.MUST) -> RuleResult:
    proofs = [
        Proof("turns/plain", Row("a.b", "turn u", Verdict.FAIL, level, actual="two"), "", "", "")
        for level in levels
    ]
    return RuleResult("a.b", "Title", rule, Verdict.FAIL, proofs=proofs)


def not_applicable(name: str, *missing: str) -> ScenarioResult:
    reason = f"the server does not offer {', '.join(missing)}"
    return ScenarioResult(name, "", "", Verdict.NOT_APPLICABLE, reason, 0, "", missing=missing)


@pytest.mark.parametrize(
    ("rule", "strict", "score", "line"),
    [
        (
            failed(Level.MUST, Level.INFO),
            False,
            "1 FAIL",
            "FAIL   a.b in turns/plain: two (2 subjects)",
        ),
        (
            failed(Level.SHOULD, rule=Level.SHOULD),
            False,
            "1 SHOULD",
            "SHOULD a.b in turns/plain: two",
        ),
        (failed(Level.SHOULD, rule=Level.SHOULD), True, "1 FAIL", "FAIL   a.b in turns/plain: two"),
        (failed(Level.INFO), False, "1 INFO", "INFO   a.b in turns/plain: two"),
    ],
)
def test_a_finding_that_does_not_count_stands_under_its_level(
    rule: RuleResult, strict: bool, score: str, line: str
) -> None:
    shown = lines(Report("p", "cmd", rules=[rule], strict=strict))
    assert shown[0] == f"rules: 1 ({score})"
    assert " ".join(line.split()) in shown


def test_features_that_a_server_lacks_are_one_list() -> None:
    found = [
        not_applicable("a", "review"),
        not_applicable("b", "archive"),
        not_applicable("c", "review"),
        not_applicable("d", "archive", "storage"),
    ]
    shown = lines(Report("p", "cmd", scenarios=found))
    at = shown.index("NOT_APPLICABLE: 4 scenario(s): the server does not offer what they need:")
    assert shown[at + 1] == "  archive (2) review (2) storage (1)"


def test_one_thing_that_is_not_offered_is_one_line() -> None:
    shown = lines(Report("p", "cmd", scenarios=[not_applicable("a", "review")]))
    assert "NOT_APPLICABLE: 1 scenario(s): the server does not offer review" in shown


def unjudged(count: int) -> Report:
    reason = "nothing to judge"
    rules = [
        RuleResult(f"{area}.rule-{number}", "", Level.MUST, Verdict.NOT_EXERCISED, reason=reason)
        for area in ("thread", "turn")
        for number in range(count)
    ]
    return Report("p", "cmd", rules=rules)


def test_many_rules_that_were_not_judged_are_one_line_of_a_selection() -> None:
    shown = lines(unjudged(20))
    about = [line for line in shown if "rule-" in line or line.startswith("NOT_EXERCISED")]
    assert about == ["NOT_EXERCISED: 40 rule(s): nothing to judge (-v names them)"]


def test_many_rules_that_were_not_judged_are_counted_by_area_in_a_whole_run() -> None:
    shown = lines(unjudged(20), whole=True)
    at = shown.index("NOT_EXERCISED: 40 rule(s): nothing to judge (-v names them):")
    assert shown[at + 1 :] == ["  thread (20) turn (20)", "verdict: GREEN"]


def test_a_finding_that_is_no_rules_leaves_the_areas_of_a_whole_run() -> None:
    report = unjudged(20)
    report.issues = [Issue("hygiene.ignores-term", "it was killed", Level.INFO)]
    assert "  thread (20) turn (20)" in lines(report, whole=True)


def test_a_red_verdict_says_what_makes_it_red() -> None:
    report = unjudged(1)
    report.scenarios = [
        ScenarioResult(name, "f", "t", verdict, "why", 0.1, "QUIESCENT")
        for name, verdict in (("a", Verdict.FAIL), ("b", Verdict.ERROR))
    ]
    report.issues = [Issue("baseline.stale", "take it out", Level.MUST)]
    assert lines(report)[-1] == "verdict: RED because of 2 scenarios, baseline.stale"
    report.interrupted = "SIGINT"
    assert lines(report)[-1] == (
        "verdict: INTERRUPTED (RED so far); red because of 2 scenarios, baseline.stale"
    )


@pytest.mark.parametrize("whole", [True, False])
def test_all_of_them_are_named_where_that_is_asked_for(whole: bool) -> None:
    shown = " ".join(lines(unjudged(20), names=True, whole=whole))
    assert all(f"{area}.rule-{number}" in shown for area in ("thread", "turn") for number in (0, 9))


def test_a_few_are_named_in_any_case() -> None:
    shown = lines(unjudged(2))
    at = shown.index("NOT_EXERCISED: nothing to judge:")
    assert shown[at + 1] == "  thread.rule-0 thread.rule-1 turn.rule-0 turn.rule-1"


def test_starts_of_the_server_are_counted_by_their_reasons() -> None:
    starts = [
        ServerStart(StartReason.FIRST, "a"),
        ServerStart(StartReason.RESTART, "b"),
        ServerStart(StartReason.RESTART, "c"),
    ]
    report = Report("p", "cmd", starts=starts)
    assert not any("server starts" in line for line in lines(report))
    shown = lines(report, names=True)
    at = shown.index("server starts: 3")
    assert shown[at + 1 : at + 3] == ["  2 restart: b c", "  1 first process: a"]
    assert from_plain(to_plain(report)).starts == starts
