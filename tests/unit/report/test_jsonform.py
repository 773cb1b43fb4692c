"""The report as JSON: builtins only, and nothing lost on the way."""

from __future__ import annotations

import json

import pytest

from harness.report.jsonform import VERSION, from_plain, to_plain
from harness.report.model import Issue, Proof, Report, RuleResult, ScenarioResult
from harness.rules.verdict import Level, Place, Row, Verdict


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
