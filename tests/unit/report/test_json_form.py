"""The report as JSON: builtins only, and nothing lost on the way."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.judge.verdict import Level, Place, Row, Verdict
from harness.report.json_form import VERSION, from_plain, to_plain
from harness.report.results.report import Issue, Proof, Report, RuleResult, ScenarioResult


def report() -> Report:
    place = Place(2, "params.turn.items[0].text", 7)
    row = Row("a.b", "turn u", Verdict.FAIL, Level.MUST, (1, 2), "one", "two", places=(place,))
    proof = Proof("s", row, "/t.jsonl", "/s.yaml", "stderr\n", "why")
    rule = RuleResult("a.b", "Title", Level.MUST, Verdict.FAIL, 1, 2, ["s"], [proof], "")
    scenario = ScenarioResult(
        "s", "/s.yaml", "t", Verdict.KNOWN, "why", 0.5, "quiescent", (("x.y", "m", 3),)
    )
    issue = Issue("hygiene.x", "left", Level.INFO, "known", "harness run x")
    return Report(
        "p",
        "cmd",
        rules=[rule],
        scenarios=[scenario],
        issues=[issue],
        unchecked=["a (scenario *)"],
        requirements={"r": "FAIL"},
        strict=True,
    )


def test_report_survives_json() -> None:
    text = json.dumps(to_plain(report()))
    assert from_plain(json.loads(text)) == report()


def test_verdicts_levels_and_colour_are_plain_words() -> None:
    plain = to_plain(report())
    assert plain["version"] == VERSION
    assert plain["red"] is True
    assert plain["rules"][0]["verdict"] == "FAIL"
    assert type(plain["rules"][0]["verdict"]) is str
    assert plain["issues"][0]["level"] == "INFO"


def test_the_members_that_a_finding_is_about_are_plain() -> None:
    [proof] = to_plain(report())["rules"][0]["proofs"]
    assert proof["row"]["places"] == [
        {"frame": 2, "path": "params.turn.items[0].text", "offset": 7}
    ]


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="report version 99; this reads 1"):
        from_plain({**to_plain(report()), "version": 99})


def test_summary_counts_by_verdict_what_the_report_holds() -> None:
    plain = to_plain(report(), 1)
    for kind in ("rules", "scenarios"):
        assert sum(plain["summary"][kind].values()) == len(plain[kind])
        for verdict, count in plain["summary"][kind].items():
            assert count == sum(one["verdict"] == verdict for one in plain[kind])
    placements = [one for race in plain["races"] for one in race["placements"]]
    assert sum(plain["summary"]["placements"].values()) == len(placements)
    assert plain["summary"]["seconds"] >= 0
    assert plain["exit"] == 1
    assert plain["harness"] == version("agent-session-harness")


def test_exit_status_is_left_out_where_it_is_not_known() -> None:
    assert "exit" not in to_plain(report())


def test_rule_says_whether_it_makes_the_run_fail() -> None:
    given = report()
    counting = [rule["id"] for rule in to_plain(given)["rules"] if rule["counts"]]
    assert counting == [rule.id for rule in given.red_rules()]
    assert counting


def test_page_has_a_row_for_every_member_and_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reports.md").read_text("utf-8")
    part = page.partition("## The JSON report")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", part, re.M)
    assert rows == list(to_plain(report(), 0))
