"""The report files of a run: results, versions and times, in formats that CI reads."""

import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import call

from harness.report.history import FILE, read_history
from harness.report.progress.events import PlayEnded, PlayStarted, RunEnded, RunStarted
from harness.report.progress.log import read_events

pytestmark = [pytest.mark.slow, pytest.mark.socket]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the reports of a run of one scenario by two workers."""
    folder = tmp_path_factory.mktemp("reports")
    words = ["--target", "reference", "turns/plain-turn", "-n", "2", "--dir", "kept"]
    said = call("harness", "run", *words, "--json", "r.json", "--junit", "r.xml", cwd=folder)
    assert said.status == 0, said.out
    return folder


def test_the_json_report_names_both_sides_and_the_time(folder: Path) -> None:
    report = json.loads((folder / "r.json").read_text("utf-8"))
    assert report["harness"] == version("agent-session-harness")
    assert report["server"].startswith("agent/")
    age = datetime.now(UTC) - datetime.fromisoformat(report["started"])
    assert 0 <= age.total_seconds() < 3600
    assert report["starts"] == [{"reason": "first process", "scenario": "turns/plain-turn"}]
    assert report["took"] >= report["scenarios"][0]["seconds"] > 0


def test_the_junit_file_has_the_same_as_properties(folder: Path) -> None:
    report = json.loads((folder / "r.json").read_text("utf-8"))
    suite = ElementTree.parse(folder / "r.xml").getroot()[0]
    found = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    same = ("harness", "target", "command", "server", "revision", "started")
    assert found == {name: report[name] for name in same} | {"verdict": "GREEN"}


def test_the_junit_file_has_a_case_with_a_time_for_each_id(folder: Path) -> None:
    report = json.loads((folder / "r.json").read_text("utf-8"))
    cases = list(ElementTree.parse(folder / "r.xml").getroot()[0].iter("testcase"))
    times = {(one.attrib["classname"], one.attrib["name"]): one.attrib["time"] for one in cases}
    assert len(times) == len(cases)
    ids = {(f"rules.{one['id'].split('.')[0]}", one["id"]) for one in report["rules"]}
    assert set(times) == {*ids, ("scenarios.turns", "turns/plain-turn")}
    assert float(times["scenarios.turns", "turns/plain-turn"]) > 0


def test_the_progress_of_a_run_by_workers_is_one_file(folder: Path) -> None:
    (path,) = (folder / "kept/progress").iterdir()
    events = [event for event, *_ in read_events(path)]
    first, last = events[0], events[-1]
    assert isinstance(first, RunStarted)
    assert (first.run, first.target, first.total) == (path.stem, "reference", 1)
    assert [event.scenario for event in events if isinstance(event, PlayStarted)] == [
        "turns/plain-turn"
    ]
    (ended,) = (event for event in events if isinstance(event, PlayEnded))
    assert (ended.verdict, ended.provisional) == ("PASS", False)
    assert Path(ended.trace).is_file()
    assert last == RunEnded(verdict="GREEN", status=0)


def test_the_history_has_the_run(folder: Path) -> None:
    ((_, runs),) = read_history(folder / "kept" / FILE).runs.items()
    assert [(one.verdict, one.passed, one.total) for one in runs] == [("GREEN", 1, 1)]


def test_a_broken_history_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("not a database " * 100)
    words = ["--target", "reference", "turns/plain-turn", "--dir", str(tmp_path)]
    said = call("harness", "run", *words, cwd=tmp_path)
    assert said.status == 0, said.out
    lines = [line for line in said.out.splitlines() if FILE in line]
    assert len(lines) == 1
    assert "not a database; delete it, or set HARNESS_HISTORY=off" in lines[0]
