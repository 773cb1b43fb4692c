"""The score of a mutation run, its exit status, and the story of surviving faults."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from harness.cli.commands.mutate import exit_status, read_results, sample_faults
from harness.errors import UsageError
from harness.faults.base import all_faults
from harness.faults.mutation import Outcome
from harness.search.mutation.result import Attempt, FaultResult, Score, decide_outcome
from harness.search.mutation.result_text import lines

KILLED, SURVIVED, MASKED, NOT_APPLIED = (
    Outcome.KILLED,
    Outcome.SURVIVED,
    Outcome.MASKED,
    Outcome.NOT_APPLIED,
)
ATTEMPT = Attempt(
    "turns/plain-turn",
    SURVIVED,
    live=True,
    changed=("dropped turn/completed (turn_1)",),
    why="the rule judged nothing",
    trace="t.jsonl",
)


def result(fault: str, outcome: Outcome, *attempts: Attempt) -> FaultResult:
    return FaultResult(fault, "turn.completes", "A turn ends.", outcome, attempts)


def score(*outcomes: Outcome, target: str = "mine") -> Score:
    found = [result(f"f{place}", one) for place, one in enumerate(outcomes)]
    return Score(target, len(outcomes), found)


@pytest.mark.parametrize(
    ("attempts", "outcome"),
    [
        ([SURVIVED, KILLED], KILLED),
        ([MASKED, SURVIVED], SURVIVED),
        ([NOT_APPLIED, MASKED], MASKED),
        ([NOT_APPLIED], NOT_APPLIED),
        ([], NOT_APPLIED),
    ],
)
def test_one_attempt_that_kills_decides(attempts: list[Outcome], outcome: Outcome) -> None:
    assert decide_outcome([replace(ATTEMPT, outcome=one) for one in attempts]) is outcome


def test_the_score_counts_what_could_be_killed_and_leaves_out_what_is_masked() -> None:
    assert score(KILLED, KILLED, SURVIVED, NOT_APPLIED, MASKED).value == pytest.approx(0.5)


def test_without_a_fault_that_could_be_killed_there_is_no_score() -> None:
    assert score(MASKED).value is None
    assert "mutation score: none" in list(lines(score(MASKED)))


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (score(KILLED, MASKED), 0),
        (score(KILLED, SURVIVED), 1),
        (score(KILLED, NOT_APPLIED), 0),
        (score(KILLED, NOT_APPLIED, target="reference"), 1),
    ],
)
def test_the_status_is_1_where_a_fault_survived(found: Score, code: int) -> None:
    assert exit_status(found) == code


def test_a_survivor_is_told_with_its_scenario_what_was_changed_and_why() -> None:
    found = Score("mine", 1, [result("turn-lost", SURVIVED, ATTEMPT)])
    told = list(lines(found))
    assert told[:4] == [
        "SURVIVED turn-lost: turn.completes should tell that A turn ends.",
        "  turns/plain-turn (live): the rule judged nothing",
        "    on the wire: dropped turn/completed (turn_1)",
        "    look: harness show t.jsonl",
    ]


def test_a_run_that_was_interrupted_says_how_much_is_left() -> None:
    found = replace(score(KILLED), planned_count=3, interrupted_by="SIGINT")
    assert "interrupted (SIGINT): 2 not tried" in list(lines(found))


def test_the_results_are_written_by_fault() -> None:
    written = Score("mine", 2, [result("b", KILLED), result("a", SURVIVED, ATTEMPT)]).as_json()
    assert [one["fault"] for one in written["faults"]] == ["a", "b"]
    assert written["counts"] == {"KILLED": 1, "SURVIVED": 1, "MASKED": 0, "NOT_APPLIED": 0}
    assert written["score"] == pytest.approx(0.5)


def test_an_attempt_is_read_as_another_process_told_it() -> None:
    told = Score("mine", 1, [result("a", SURVIVED, ATTEMPT)]).as_json()
    assert Attempt.read(told["faults"][0]["attempts"][0]) == ATTEMPT


def test_a_resumed_run_keeps_killed_and_masked_faults(tmp_path: Path) -> None:
    found = [result("a", KILLED, ATTEMPT), result("b", SURVIVED), result("c", MASKED)]
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps(Score("mine", 4, [*found, result("other", KILLED)]).as_json()))
    assert read_results(path, "mine", ["a", "b", "c", "d"]) == [found[0], found[2]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"format": 1, "target": "mine"}',
        '{"format": 1, "target": "other", "faults": []}',
        '{"format": 9, "target": "mine", "faults": []}',
    ],
)
def test_without_a_run_of_this_target_nothing_is_resumed(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "results.json").write_text(text)
    with pytest.raises(UsageError, match="has no run of target 'mine'; leave out --resume"):
        read_results(path, "mine", ["a"])


@pytest.mark.parametrize("count", [1, 7, 100])
def test_a_sample_is_spread_over_all_faults(count: int) -> None:
    every = list(all_faults())
    found = [every.index(one) for one in sample_faults(all_faults(), count)]
    apart = [after - before for before, after in pairwise([*found, len(every)])]
    assert len(found) == count
    assert max(apart) - min(apart) <= 1


@pytest.mark.parametrize("count", [0, 10_000])
def test_without_a_smaller_number_all_faults_are_tried(count: int) -> None:
    assert sample_faults(all_faults(), count) == all_faults()
