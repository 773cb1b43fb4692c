"""`harness run --suite`: what came after a suite is reported, and does not count."""

import json
from pathlib import Path

import pytest
from command_line import call

from harness.judge.rules.discovery import every_rule

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SERVER = "python twice.py python server.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, file in (("minimal", "server.py"), ("twice", "twice.py")):
        assert call("harness", "example", name, "-o", file, cwd=tmp_path).status == 0
    return tmp_path


def suite(folder: Path, *, without: str) -> None:
    lines = [f"rule {rule}" for rule in every_rule() if rule != without]
    lines += ["scenario turns/plain-turn"]
    (folder / "old.suite").write_text("\n".join(lines))


def run(folder: Path, *words: str) -> tuple[int, str]:
    said = call("harness", "run", "--server-cmd", SERVER, *words, cwd=folder)
    return said.status, said.out


def test_a_later_rule_that_is_broken_is_reported_and_does_not_count(folder: Path) -> None:
    suite(folder, without="turn.completed-once")
    options = ["--suite", "old.suite", "--json", "report.json"]
    status, printed = run(folder, "turns/plain-turn", "turns/plan-item", *options)
    assert status == 0, printed
    assert "KNOWN turn.completed-once: the rule is newer than the suite old.suite" in printed
    assert "suite: old.suite; later rules: 1, which do not count; later scenarios: " in printed
    report = json.loads((folder / "report.json").read_text())
    assert report["suite"].startswith("old.suite; later rules: 1")
    assert [one["id"] for one in report["scenarios"]] == ["turns/plain-turn"]


def test_a_rule_of_the_suite_counts(folder: Path) -> None:
    suite(folder, without="turn.no-such")
    status, printed = run(folder, "turns/plain-turn", "--suite", "old.suite")
    assert status == 1
    assert "verdict: RED because of 1 rule" in printed


def test_an_own_scenario_is_played_with_any_suite(folder: Path) -> None:
    suite(folder, without="turn.completed-once")
    own = "title: Own\nclient:\n  - start_thread: {as: t}\n"
    (folder / "own.scenario.yaml").write_text(own)
    status, printed = run(folder, "own.scenario.yaml", "--suite", "old.suite")
    assert status == 0, printed
    assert "scenarios: 1 (1 PASS)" in printed


def test_a_run_in_which_nothing_of_the_suite_is_left_says_so(folder: Path) -> None:
    suite(folder, without="turn.no-such")
    status, printed = run(folder, "turns/plan-item", "--suite", "old.suite")
    assert status != 0
    assert "--suite old.suite" in printed
