"""`--repeat`, `--retries` and `--max-time` of a run: plays, output and exit status."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, Said, call

pytestmark = [pytest.mark.slow, pytest.mark.socket]

# The second turn in a folder ends twice.
UNSTEADY = f"python {ROOT}/fixtures/servers/broken/unsteady.py"
TWO = ("turns/plain-turn", "turns/two-turns")


def run(folder: Path, *words: str, server: str = UNSTEADY) -> tuple[Said, dict[str, Any]]:
    said = call("harness", "run", "--server-cmd", server, "--json", "r.json", *words, cwd=folder)
    return said, json.loads((folder / "r.json").read_text("utf-8"))


def test_a_retry_that_passes_makes_the_run_green_and_is_told(tmp_path: Path) -> None:
    said, report = run(tmp_path, "turns/two-turns", "--retries", "2")
    assert said.status == 0, said.out
    assert "1 of them in 2 plays, 1 unsteady" in said.out
    (issue,) = report["issues"]
    assert (issue["id"], issue["level"]) == ("unsteady", "INFO")
    assert "turn.completed-once (in 1 of 2 plays)" in issue["message"]
    (one,) = report["scenarios"]
    assert (one["runs"], one["failed_runs"]) == (2, 1)


def test_of_repeated_plays_one_that_fails_fails_the_run(tmp_path: Path) -> None:
    said, report = run(tmp_path, "turns/plain-turn", "--repeat", "3")
    assert said.status == 1
    (one,) = report["scenarios"]
    assert (one["runs"], one["failed_runs"]) == (3, 1)
    # The story shows the conversation that failed, not the last one.
    broken = next(rule for rule in report["rules"] if rule["counts"])
    assert [proof["row"]["rule"] for proof in broken["proofs"]] == ["turn.completed-once"]
    trace = Path(one["trace"]).read_text("utf-8")
    assert trace.count('\\"method\\": \\"turn/completed\\"') == 2


@pytest.mark.parametrize("workers", ["0", "2"])
def test_each_scenario_is_repeated_whatever_the_number_of_workers(
    tmp_path: Path, workers: str
) -> None:
    good = f"python {ROOT}/fixtures/servers/minimal.py"
    said, report = run(tmp_path, *TWO, "--repeat", "3", "-n", workers, server=good)
    assert said.status == 0, said.out
    assert [one["runs"] for one in report["scenarios"]] == [3, 3]
    assert report["issues"] == []


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_whose_time_is_over_is_no_pass(tmp_path: Path, workers: str) -> None:
    good = f"python {ROOT}/fixtures/servers/minimal.py"
    said, report = run(tmp_path, *TWO, "--max-time", "0.001", "-n", workers, server=good)
    assert said.status == 6, said.out
    assert (report["exit"], report["red"]) == (6, False)
    assert report["unplayed"] == list(TWO)
    assert {one["verdict"] for one in report["scenarios"]} == {"NOT_EXERCISED"}
    assert "verdict: GREEN so far, NOT WHOLE: --max-time was over, and 2 of 2 were" in said.out


def test_a_race_is_not_begun_after_that_either(tmp_path: Path) -> None:
    words = ["--race", "interrupt", "turns/plain-turn", "--max-time", "0.001"]
    said, report = run(tmp_path, *words)
    assert said.status == 6, said.out
    assert report["unplayed"] == ["turns/plain-turn@interrupt"]


def test_a_run_that_is_done_in_time_is_as_ever(tmp_path: Path) -> None:
    good = f"python {ROOT}/fixtures/servers/minimal.py"
    said, report = run(tmp_path, *TWO, "--max-time", "600", server=good)
    assert (said.status, report["unplayed"]) == (0, []), said.out
    assert said.out.splitlines()[-2] == "verdict: GREEN"


def test_a_red_verdict_stays_red_when_the_time_is_over(tmp_path: Path) -> None:
    twice = f"python {ROOT}/fixtures/servers/broken/does_not_start.py"
    said, _ = run(tmp_path, *TWO, "--max-time", "600", server=twice)
    assert said.status == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--repeat", "2", "--retries", "1"], "--repeat and --retries: give one of them"),
        (["--max-time", "-3"], "--max-time -3: give a number of seconds greater than 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(words: list[str], complaint: str) -> None:
    said = call("harness", "run", "--server-cmd", UNSTEADY, *words)
    assert said.status == 2
    assert complaint in said.err
