"""Questions of a bisection to made-up reports, and the forms of a matrix of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.errors import UsageError
from harness.judge.verdict import Verdict
from harness.report.badges import endpoint, picture
from harness.report.matrix import Column, Matrix, read_column
from harness.report.results.outcome import UNSTEADY, Finding
from harness.report.results.report import Report
from harness.search.releases.halving import Answer
from harness.search.releases.question import NOT_JUDGED, NOT_SHOWN, SHOWN, Question
from tests.unit.results.outcomes import ONCE, failed, outcome, passed, report_of

SCENARIO, PLAIN = "turns/second-start", "turns/plain-turn"
KEPT = report_of(outcome(SCENARIO, passed(ONCE)))
BROKEN = report_of(outcome(SCENARIO, failed(ONCE)))
KNOWN = replace(failed(ONCE), verdict=Verdict.KNOWN)
FLAKY = Finding(UNSTEADY, "sometimes", about=(SCENARIO,))


@pytest.mark.parametrize(
    ("report", "answer"),
    [
        (KEPT, Answer(NOT_SHOWN)),
        (BROKEN, Answer(SHOWN)),
        (report_of(outcome(SCENARIO, KNOWN)), Answer(SHOWN)),
        (report_of(outcome(SCENARIO)), Answer(NOT_JUDGED)),
        # The plain turn comes first to see that there is a server; it is not asked about.
        (report_of(outcome(PLAIN, failed(ONCE)), outcome(SCENARIO)), Answer(NOT_JUDGED)),
        (
            report_of(outcome(SCENARIO, failed(ONCE), findings=[FLAKY])),
            Answer(SHOWN, is_flaky=True),
        ),
        (
            report_of(outcome(SCENARIO, verdict=Verdict.ERROR)),
            Answer(problem=f"the harness failed: ERROR of {SCENARIO}"),
        ),
    ],
)
def test_a_run_answers_whether_it_shows_a_finding(report: Report, answer: Answer) -> None:
    assert Question.parse(f"{ONCE}@{SCENARIO}", "").answer(report) == answer


def test_a_run_answers_how_a_scenario_ends() -> None:
    question = Question.parse("", SCENARIO)
    timeout = Finding("scenario.timeout", "waited")
    bad = report_of(outcome(SCENARIO, verdict=Verdict.FAIL, findings=[timeout]))
    assert question.answer(KEPT) == Answer("PASS")
    assert question.answer(bad) == Answer("FAIL")
    finding = Question.parse(f"scenario.timeout@{SCENARIO}", "")
    assert (finding.answer(bad).state, finding.answer(KEPT).state) == (SHOWN, NOT_SHOWN)


def test_a_rule_alone_is_asked_in_the_scenarios_that_can_show_it() -> None:
    question = Question.parse(ONCE, "")
    assert {SCENARIO, PLAIN} & set(question.scenarios)
    other = report_of(outcome(SCENARIO, passed(ONCE)), outcome("turns/other", failed(ONCE)))
    both = report_of(outcome(SCENARIO, failed(ONCE)), outcome("turns/other", failed(ONCE)))
    assert question.narrow([KEPT, both]).scenarios == (SCENARIO,), "judged in both runs"
    assert question.narrow([KEPT, other]).scenarios == ("turns/other",)


def column(name: str, report: Report | None = None, problem: str = "") -> Column:
    return Column(name, name, "", "spec", {"server": name}, "key", report, problem)


MATRIX = Matrix([column("old", KEPT), column("<new>", BROKEN), column("gone", problem="no | file")])


def test_only_requirements_on_which_targets_differ_are_shown() -> None:
    lines = list(MATRIX.text_lines())
    assert [line.split()[:3] for line in lines[:3]] == [
        ["1", "old", "GREEN,"],
        ["2", "<new>", "RED,"],
        ["3", "gone", "not"],
    ]
    table = lines[lines.index("") + 1 : -2]
    assert table[0].split() == ["requirement", "1", "2"]
    assert table[1:]
    assert all(row.split()[1:] == ["ok", "FAIL"] for row in table[1:])
    assert len(list(MATRIX.text_lines(full=True))) > len(lines)
    assert "requirements differ" in lines[-1]
    page = "\n".join(MATRIX.markdown_lines())
    assert "| requirement | `old` | `<new>` |" in page
    assert r"| `gone` | not judged: no \| file |" in page


def test_unexercised_and_partly_judged_requirements_are_no_difference() -> None:
    unjudged = report_of(outcome(SCENARIO))
    partly = replace_requirements(KEPT, "PARTLY")
    for other in (unjudged, partly):
        assert not Matrix([column("a", KEPT), column("b", other)]).rows(only_differences=True)
    missing = replace_requirements(KEPT, "NOT_APPLICABLE")
    assert Matrix([column("a", KEPT), column("b", missing)]).rows(only_differences=True)


def replace_requirements(report: Report, word: str) -> Report:
    """Return the report with this verdict in place of each PASS."""
    verdicts = {
        name: word if verdict == "PASS" else verdict
        for name, verdict in report.requirements.items()
    }
    return replace(report, requirements=verdicts)


def test_the_json_of_a_matrix_holds_each_report(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps(MATRIX.to_plain()))
    plain = json.loads(file.read_text())
    assert (plain["version"], plain["kind"]) == (1, "matrix")
    assert [one["verdict"] for one in plain["targets"]] == ["GREEN", "RED", "not judged"]
    differing = [one for one in plain["requirements"] if one["differs"]]
    assert differing[0]["verdicts"] == {"old": "PASS", "<new>": "FAIL"}
    assert read_column(file, "<new>") == BROKEN
    for name, reason in (("gone", "not judged: no | file"), ("ol", "did you mean 'old'")):
        with pytest.raises(UsageError, match=reason.replace("|", r"\|")):
            read_column(file, name)
    file.write_text(json.dumps({**plain, "version": 2}))
    with pytest.raises(UsageError, match="not the JSON of harness matrix, version 1"):
        read_column(file, "old")


def test_badges_say_how_many_requirements_are_kept() -> None:
    old, new, gone = (endpoint(one) for one in MATRIX.columns)
    assert old.keys() == {"schemaVersion", "label", "message", "color"}
    assert old["message"].split()[0] == old["message"].split()[2]
    assert new["message"].split()[0] != new["message"].split()[2]
    assert gone["message"] == "not judged"
    assert len({badge["color"] for badge in (old, new, gone)}) == 3
    odd = replace(MATRIX.columns[0], name="one & <two>")
    for one in (*MATRIX.columns, odd):
        badge = ElementTree.fromstring(picture(one))
        assert one.name in "".join(badge.itertext())
        assert one.name in badge.get("aria-label", "")
