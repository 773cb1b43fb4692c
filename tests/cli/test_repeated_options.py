"""Options that take several names: with commas, or each with an option of its own."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, call

pytestmark = [pytest.mark.slow, pytest.mark.socket]

GOOD = f"python {ROOT}/fixtures/servers/minimal.py"
WAYS = [
    ["--rule", "turn.completes,turn.completed-once"],
    ["--rule", "turn.completes", "--rule", "turn.completed-once"],
]


def judged(report: Path) -> list[str]:
    told: dict[str, Any] = json.loads(report.read_text("utf-8"))
    return sorted(one["id"] for one in told["rules"])


@pytest.mark.parametrize("words", WAYS)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_judges_each_rule_that_is_named(
    words: list[str], workers: str, tmp_path: Path
) -> None:
    asked = ["turns/plain-turn", *words, "-n", workers, "--json", "r.json"]
    said = call("harness", "run", "--server-cmd", GOOD, *asked, cwd=tmp_path)
    assert said.status == 0, said.out
    assert judged(tmp_path / "r.json") == ["turn.completed-once", "turn.completes"]


@pytest.mark.parametrize("words", WAYS)
def test_pytest_judges_each_of_them_too(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "one.scenario.yaml").write_text(
        (ROOT / "scenarios" / "turns" / "plain-turn.scenario.yaml").read_text("utf-8"), "utf-8"
    )
    asked = ["--server-cmd", GOOD, *words, "--harness-json", "r.json", "one.scenario.yaml"]
    said = call("pytest", "-q", *asked, cwd=tmp_path)
    assert said.status == 0, said.out
    assert judged(tmp_path / "r.json") == ["turn.completed-once", "turn.completes"]


def test_scenarios_of_each_tag_that_is_named_are_played(tmp_path: Path) -> None:
    asked = ["--tag", "plans", "--tag", "recorded", "--json", "r.json"]
    said = call("harness", "run", "--target", "reference", *asked, cwd=tmp_path)
    assert said.status == 0, said.out
    told = json.loads((tmp_path / "r.json").read_text("utf-8"))
    areas = {one["id"].split("/")[0] for one in told["scenarios"]}
    assert {"plans", "recorded"} <= areas


def test_each_fault_that_is_named_is_tried(tmp_path: Path) -> None:
    faults = ["turn-ends-twice", "turn-never-ends"]
    asked = [word for name in faults for word in ("--fault", name)]
    call(
        "harness",
        "mutate",
        "--target",
        "reference",
        *asked,
        "-n",
        "1",
        "--json",
        "m.json",
        cwd=tmp_path,
    )
    told = json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert sorted(one["fault"] for one in told["faults"]) == faults


def test_each_capability_that_is_named_must_be_there(tmp_path: Path) -> None:
    asked = ["--require", "skills", "--require", "plan-update", "--json", "r.json"]
    played = ["skills/by-name", "plans/changed-twice"]
    call("harness", "run", "--server-cmd", GOOD, *asked, *played, cwd=tmp_path)
    told = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert {one["id"]: one["verdict"] for one in told["scenarios"]} == dict.fromkeys(played, "FAIL")


def test_each_race_that_is_named_is_run(tmp_path: Path) -> None:
    races = ["interrupt@turn:started", "steer@turn:started"]
    asked = [word for race in races for word in ("--race", race)]
    asked += ["--json", "r.json", "turns/plain-turn"]
    said = call("harness", "run", "--target", "reference", *asked, cwd=tmp_path)
    assert said.status == 0, said.out
    told = json.loads((tmp_path / "r.json").read_text("utf-8"))
    placed = [(one["action"], each) for one in told["races"] for each in one["placements"]]
    assert sorted(f"{action}@{each['position']}" for action, each in placed) == races
