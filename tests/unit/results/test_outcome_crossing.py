"""Outcomes of a worker reach the controller as builtins, and lose nothing."""

import json

from harness.judge.verdict import Level, Place, Row, Verdict
from harness.report.results.outcome import (
    Finding,
    ScenarioOutcome,
    finding_from_plain,
    finding_to_plain,
)

PLACE = Place(3, "params.item.text", 12)
FINDING = Finding(
    "scenario.expectation", "m", 7, places=(PLACE,), about=("a", "b"), detail=("-x", "+y")
)


def test_a_finding_crosses_with_its_places_and_its_detail() -> None:
    assert finding_from_plain(json.loads(json.dumps(finding_to_plain(FINDING)))) == FINDING


def test_an_outcome_crosses_with_the_places_of_its_rows() -> None:
    row = Row("a.b", "turn u", Verdict.FAIL, Level.MUST, (3,), "one", "two", places=(PLACE,))
    outcome = ScenarioOutcome("a", "/a", "A", Verdict.FAIL, findings=[FINDING], rows=[row])
    plain = json.loads(json.dumps(outcome.to_plain()))
    assert ScenarioOutcome.from_plain(plain) == outcome
