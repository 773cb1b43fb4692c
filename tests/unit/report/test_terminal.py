"""The summary in a terminal: what counts, what does not, and what was not judged."""

import pytest

from harness.judge.verdict import Level, Row, Verdict
from harness.report.terminal import summary
from harness.results.report import Proof, Report, RuleResult, ScenarioResult
from harness.spec.loading import load_book


def lines(report: Report) -> list[str]:
    return list(summary(report, load_book()))


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
            "FAIL   a.b in turns/plain: two (+1 more)",
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


def test_what_a_server_does_not_offer_is_one_list() -> None:
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
