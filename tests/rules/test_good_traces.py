"""The stored good traces equal the builder's output, and no rule objects to any of them."""

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.store import lines, load
from harness.trace.surface.registry import classify_of
from tests.rules.good_traces import FOLDER, GOOD


def test_the_folder_holds_exactly_the_good_traces() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(GOOD)


@pytest.mark.parametrize("name", GOOD)
def test_a_stored_good_trace_is_what_the_builder_writes(name: str) -> None:
    stored = (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    assert stored == list(lines(GOOD[name]())), "python -m tests.rules.good_traces writes it"


@pytest.mark.parametrize("name", GOOD)
def test_no_rule_objects_to_a_good_trace(name: str) -> None:
    rows = judge(
        load_book(), load(FOLDER / f"{name}.jsonl", classify_of=classify_of), all_rules().values()
    )
    assert [row for row in rows if row.verdict is not Verdict.PASS] == []


def test_together_the_good_traces_exercise_every_rule() -> None:
    exercised = {
        row.rule
        for build in GOOD.values()
        for row in judge(load_book(), build(), all_rules().values())
    }
    unexercised = sorted(set(all_rules()) - exercised)
    assert not unexercised, (
        f"extend a good trace (tests/rules/good_*.py) so that {unexercised} judge something, "
        "then run python -m tests.rules.good_traces"
    )
