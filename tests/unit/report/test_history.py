"""The history of runs: what is asked of it, and that no state of its file stops a run."""

import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from harness.judge.verdict import Verdict
from harness.report import history
from harness.report.history import HistoryError, add_run, last_seconds, read_history
from harness.report.results.report import Report, ScenarioResult


def _report(target: str, started: int, **verdicts: tuple[Verdict, float]) -> Report:
    scenarios = [
        ScenarioResult(name, f"{name}.scenario.yaml", name, verdict, "", seconds, "QUIESCENT")
        for name, (verdict, seconds) in verdicts.items()
    ]
    report = Report(target, "", scenarios=scenarios)
    report.started = f"2026-11-23T03:33:{started:02}Z"
    return report


def test_runs_are_kept_by_target_and_release(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    for number in range(3):
        add_run(path, f"r{number}", _report("spec", number, a=(Verdict.PASS, 1.0)))
    other = _report("other", 9, a=(Verdict.FAIL, 1.0))
    other.release = "0.169"
    add_run(path, "r9", other)
    runs = read_history(path).runs
    assert [one.run for one in runs["spec", ""]] == ["r0", "r1", "r2"]
    assert [(one.failed, one.total) for one in runs["other", "0.169"]] == [(1, 1)]


def test_flaky_and_slow_scenarios_are_found(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    turns = (Verdict.PASS, Verdict.FAIL)
    for number in range(4):
        fixed = Verdict.FAIL if number < 2 else Verdict.PASS
        plays = {"flaky": (turns[number % 2], 1.0), "fixed": (fixed, 9.0)}
        left_out = {"left-out": (Verdict.NOT_EXERCISED, 50.0)}
        add_run(path, f"r{number}", _report("spec", number, **plays, **left_out))
    found = read_history(path)
    assert [(one.scenario, one.changes) for one in found.flaky] == [("flaky", 3)]
    assert [(one.scenario, one.median_seconds) for one in found.slowest] == [
        ("fixed", 9.0),
        ("flaky", 1.0),
    ]


def test_a_scenario_repeated_with_both_outcomes_is_flaky(tmp_path: Path) -> None:
    report = _report("spec", 1, a=(Verdict.PASS, 1.0))
    report.scenarios[0] = replace(report.scenarios[0], runs=5, failed_runs=2)
    add_run(tmp_path / "h", "r1", report)
    assert [one.scenario for one in read_history(tmp_path / "h").flaky] == ["a"]


def test_last_duration_of_each_scenario_on_a_target(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    assert last_seconds(path, "spec") == {}
    assert not path.exists()
    add_run(path, "r1", _report("spec", 1, a=(Verdict.PASS, 9.0), b=(Verdict.FAIL, 3.0)))
    add_run(path, "r2", _report("spec", 2, a=(Verdict.PASS, 1.0), c=(Verdict.NOT_EXERCISED, 5.0)))
    add_run(path, "r3", _report("other", 3, a=(Verdict.PASS, 7.0)))
    assert last_seconds(path, "spec") == {"a": 1.0, "b": 3.0}
    path.write_bytes(b"not a database" * 100)
    assert last_seconds(path, "spec") == {}


def test_old_runs_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_RUNS", 2)
    for number in range(5):
        add_run(tmp_path / "h", f"r{number}", _report("spec", number, a=(Verdict.PASS, 1.0)))
    with sqlite3.connect(tmp_path / "h") as connection:
        for table in ("runs", "plays"):
            rows = connection.execute(f"SELECT DISTINCT run FROM {table} ORDER BY run").fetchall()
            assert rows == [("r3",), ("r4",)]


def test_runs_that_end_at_once_are_all_kept(tmp_path: Path) -> None:
    report = _report("spec", 1, **{f"s{number}": (Verdict.PASS, 1.0) for number in range(100)})
    threads = [
        threading.Thread(target=add_run, args=(tmp_path / "h", f"r{number}", report))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_history(tmp_path / "h").runs["spec", ""]) == 8


def test_a_history_that_cannot_be_used_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = _report("spec", 1)
    broken = tmp_path / "broken"
    broken.write_bytes(b"not a database " * 100)
    with pytest.raises(HistoryError, match="not a database; delete it, or set HARNESS_HISTORY"):
        add_run(broken, "r1", report)
    with pytest.raises(HistoryError, match="not a database"):
        read_history(broken)
    with pytest.raises(HistoryError, match="unable to open"):
        add_run(tmp_path / "missing" / "h", "r1", report)
    monkeypatch.setattr(history, "LOCK_SECONDS", 0.01)
    add_run(tmp_path / "h", "r1", report)
    with sqlite3.connect(tmp_path / "h") as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HistoryError, match="locked; wait for the process that uses it"):
            add_run(tmp_path / "h", "r2", report)
    assert read_history(tmp_path / "nothing").runs == {}
