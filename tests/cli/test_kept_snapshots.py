"""`harness run --snapshots DIR`: the stored snapshot of each scenario, and the run's output."""

import json
from pathlib import Path

import pytest
from kept_snapshots import MORE, NAMED, SCENARIO, TELLS, Project

pytestmark = [pytest.mark.slow, pytest.mark.socket]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    own = Project(tmp_path / "own")
    own.path.mkdir()
    own.serves()
    return own


def accept(project: Project, *scenarios: str) -> None:
    for scenario in scenarios or (SCENARIO,):
        place = project.accepted(scenario)
        place.parent.mkdir(parents=True, exist_ok=True)
        project.pending(scenario).rename(place)


def test_a_new_transcript_is_pending_and_one_that_is_accepted_stays(project: Project) -> None:
    said = project.run()
    assert said.status == 0, said.out
    assert "snapshots: 1 new" in said.out
    assert "INFO snapshots.pending: 1 snapshot(s) wait for review (1 new, 0 changed)" in said.out
    assert "harness snapshots review kept" in said.out
    assert '"threadId": "<thread 1>"' in project.pending().read_text("utf-8")
    accept(project)
    said = project.run()
    assert (said.status, "snapshots: 1 same" in said.out) == (0, True)
    assert not project.pending().exists()
    ignored = project.snapshots / ".pending/.gitignore"
    assert "*" in ignored.read_text("utf-8").splitlines()


def test_a_change_is_pending_in_words_and_goes_when_it_is_undone(project: Project) -> None:
    project.run()
    accept(project)
    project.serves(TELLS, MORE)
    said = project.run("--json", "report.json", SCENARIO)
    assert said.status == 0
    change = "one message more: turn/plan/updated after turn/started"
    assert f"changed {SCENARIO}: {change}" in said.out
    report = json.loads((project.path / "report.json").read_text("utf-8"))
    (scenario,) = report["scenarios"]
    assert scenario["snapshot"] == {"state": "changed", "told": [change]}
    project.serves()
    assert "snapshots: 1 same" in project.run().out
    assert not project.pending().exists()


def test_a_change_makes_a_run_in_ci_fail(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.run()
    accept(project)
    project.serves(NAMED, '{"turn": turn, "extra": 1}')
    assert project.run().status == 0
    said = project.run("--snapshots-strict", SCENARIO)
    assert said.status == 1
    assert "FAIL snapshots.pending" in said.out
    assert "new field: extra in the answer to turn/start: 1" in said.out
    monkeypatch.setenv("CI", "true")
    assert project.run().status == 1


def test_a_part_of_a_run_does_not_tell_what_is_unused(project: Project) -> None:
    gone = renamed(project)
    for words in ((SCENARIO,), ("-k", "plain-turn"), ("-n", "2", "turns/plain-turn")):
        said = project.run(*words)
        assert (said.status, "unused" in said.out) == (0, False), said.out
    assert gone.exists()


def renamed(project: Project) -> Path:
    """The transcript of a scenario that nobody has any more."""
    project.run()
    accept(project)
    gone = project.accepted("turns/renamed")
    gone.write_bytes(project.accepted().read_bytes())
    return gone


@pytest.mark.runs
def test_a_whole_run_by_several_workers_tells_what_is_unused(project: Project) -> None:
    gone = renamed(project)
    said = project.run("-n", "2")
    assert said.status == 1
    assert "unused turns/renamed" in said.out
    assert "FAIL snapshots.unused: 1 snapshot(s) are of no scenario that is played" in said.out
    note = project.pending("turns/renamed").with_suffix(".unused")
    assert note.read_text("utf-8") == "no scenario has this id any more\n"
    assert gone.exists()


def test_an_edited_snapshot_is_told_with_its_line(project: Project) -> None:
    project.run()
    accept(project)
    text = project.accepted().read_text("utf-8")
    project.accepted().write_text(text.replace('"inProgress"', '"completed"', 1), "utf-8")
    said = project.run()
    line = next(at for at, one in enumerate(text.splitlines(), 1) if '"inProgress"' in one)
    assert f"kept/spec/{SCENARIO}.transcript:{line}: edited by hand" in said.out
    assert project.pending().exists()


@pytest.mark.parametrize("obstacle", ["a file", "a folder of nobody"])
def test_a_folder_that_cannot_be_written_ends_the_run_at_once(
    project: Project, obstacle: str
) -> None:
    if obstacle == "a file":
        project.snapshots.write_text("", "utf-8")
        said = project.run()
    else:
        options = ("--server-cmd", "python server.py", "--snapshots", "/proc/nothing")
        said = project.harness("run", SCENARIO, *options)
    assert said.status == 2
    assert "cannot be written" in said.out + said.err
    assert "Traceback" not in said.out + said.err


def test_snapshots_need_a_server(project: Project) -> None:
    said = project.harness("run", "--snapshots", "kept", "--target", "nobody")
    assert said.status == 2
