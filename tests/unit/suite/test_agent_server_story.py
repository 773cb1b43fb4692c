"""The story of a client under test: failures, and mere warnings."""

from typing import Any

import pytest

from harness.cli.suite.agent_server import hints_of, notes_of, story


def report(*levels: str) -> dict[str, Any]:
    """A report with one connection that breaks a duty of each level."""
    duties = [
        {
            "rule": f"duty.{level.lower()}",
            "level": level,
            "verdict": "FAIL",
            "clause": "rpc.some: Some.",
            "expected": "one thing",
            "actual": "another",
            "wire": [],
        }
        for level in levels
    ]
    connection = {
        "connection": "1",
        "scenario": "mine",
        "problems": [],
        "refused": [],
        "duties": duties,
    }
    return {"verdict": "GREEN", "connections": [connection], "unused": []}


@pytest.mark.parametrize(
    ("strict", "failing", "warned"),
    [(False, ["MUST"], ["SHOULD"]), (True, ["MUST", "SHOULD"], [])],
)
def test_should_fails_the_test_with_strict_and_is_a_warning_without(
    strict: bool, failing: list[str], warned: list[str]
) -> None:
    found = report("MUST", "SHOULD", "INFO")
    for text, levels in (
        (story(found, strict=strict), failing),
        (hints_of(found, strict=strict), warned),
        (notes_of(found), ["INFO"]),
    ):
        assert [level for level in ("MUST", "SHOULD", "INFO") if f"({level})" in text] == levels


def test_nothing_is_said_of_a_client_that_keeps_its_duties() -> None:
    assert (story(report()), hints_of(report(), strict=False), notes_of(report())) == ("", "", "")


def test_broken_duties_and_refused_requests_come_before_the_problems() -> None:
    found = report("SHOULD", "MUST", "INFO")
    found["connections"][0]["problems"] = [f"problem {number}" for number in range(1, 6)]
    found["connections"][0]["refused"] = ['#4 turn/start -32600 "no thread"']
    lines = [line for line in story(found).splitlines() if line.startswith("  ")]
    assert [line.strip() for line in lines if not line.startswith("    ")] == [
        "duty.must (MUST): rpc.some: Some.",
        "duty.should (SHOULD): rpc.some: Some.",
        'refused: #4 turn/start -32600 "no thread"',
        "problem 1",
        "problem 2",
        "problem 3",
        "and 2 more problem(s), which may follow from the above",
    ]
    assert (hints_of(found, strict=False), "duty.info" in notes_of(found)) == ("", True)


def test_problems_without_a_broken_duty_are_all_told() -> None:
    found = report("INFO")
    found["connections"][0]["problems"] = [f"problem {number}" for number in range(1, 6)]
    assert [line for line in story(found).splitlines() if "problem " in line] == [
        f"  problem {number}" for number in range(1, 6)
    ]
