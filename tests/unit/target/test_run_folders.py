"""Folders of a run, and the removal of the files of dead runs."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.client.target.process_tree import MARK
from harness.client.target.profile import parse_profile
from harness.client.target.run_folders import (
    FOLDER_VARIABLE,
    HISTORY,
    LARGE_RUN_TRACES,
    MAX_LARGE_RUNS_KEPT,
    MAX_SMALL_RUNS_KEPT,
    RunFolder,
    base_folder,
    failures_folder,
    find_kept_file,
    folder_note,
    keep_trace,
    recorded_folder,
    remove_dead_runs,
    remove_old_runs,
    write_home_files,
)
from harness.errors import UsageError

WAIT = [sys.executable, "-c", "import sys; sys.stdin.read()"]


@pytest.fixture
def dead_pid() -> int:
    """The id of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_base_lies_in_the_folder_unless_that_is_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    here, temporary = tmp_path / "here", tmp_path / "tmp" / "deep"
    for folder in (here, temporary):
        folder.mkdir(parents=True)
    assert base_folder(here) == here / ".harness"
    elsewhere = base_folder(temporary)
    assert elsewhere.parent == tmp_path / "me" / ".cache" / "harness"
    assert elsewhere.name.startswith("deep-")
    assert elsewhere.is_dir()
    # Two folders of one name keep apart what they found.
    (other := tmp_path / "tmp" / "other" / "deep").mkdir(parents=True)
    assert base_folder(other) != elsewhere


def test_a_trace_is_found_as_the_pages_name_it_wherever_the_base_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (here := tmp_path / "tmp" / "here").mkdir(parents=True)
    monkeypatch.chdir(here)
    named = Path(".harness/traces/spec/a.jsonl")
    assert find_kept_file(named) == named
    (trace := base_folder() / "traces" / "spec" / "a.jsonl").parent.mkdir(parents=True)
    trace.touch()
    assert find_kept_file(named) == trace
    assert find_kept_file(trace) == trace
    assert find_kept_file(Path("a.jsonl")) == Path("a.jsonl")


def test_failures_are_kept_where_one_works_wherever_the_base_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    (here := tmp_path / "tmp" / "here").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(here)], check=True)
    monkeypatch.chdir(here)
    folder = failures_folder()
    assert folder.resolve() == here / ".harness" / "fuzz"
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    seen = subprocess.check_output(["git", "status", "--porcelain"], cwd=here, text=True)
    assert seen == ""


def test_failures_go_to_the_folder_of_the_run_if_the_current_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".harness").write_text("a file")
    assert failures_folder() == base_folder() / "fuzz"
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "own"))
    assert failures_folder() == tmp_path / "own" / "fuzz"


def test_base_is_nothing_for_git_and_a_file_of_the_user_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    base = base_folder(tmp_path)
    (base / "traces").mkdir()
    (base / "traces" / "a.jsonl").write_text("{}")
    seen = subprocess.check_output(["git", "status", "--porcelain"], cwd=tmp_path, text=True)
    assert seen == ""
    (base / ".gitignore").write_text("mine")
    base_folder(tmp_path)
    assert (base / ".gitignore").read_text() == "mine"


def test_base_has_the_folder_in_which_reports_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    assert (base_folder(tmp_path) / "reports").is_dir()


UNUSABLE = ("a file", "read-only", "full", "not UTF-8")


@pytest.fixture
def unusable(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A current folder in which no run can keep its files."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    folder = tmp_path / (os.fsdecode(b"a\xff") if request.param == "not UTF-8" else "a")
    folder.mkdir()
    monkeypatch.chdir(folder)
    if request.param == "a file":
        (folder / ".harness").write_text("a file")
    error = {"read-only": errno.EROFS, "full": errno.ENOSPC}.get(request.param)
    if error is not None:
        temporary_file = tempfile.TemporaryFile

        def fail(*, dir: Path) -> Any:
            if dir.is_relative_to(folder):
                raise OSError(error, os.strerror(error), str(dir))
            return temporary_file(dir=dir)

        monkeypatch.setattr("tempfile.TemporaryFile", fail)
    return folder


@pytest.mark.parametrize("unusable", UNUSABLE, indirect=True)
def test_base_is_in_the_cache_if_the_current_folder_cannot_be_used(
    unusable: Path, tmp_path: Path
) -> None:
    base = base_folder()
    assert base.parent == tmp_path / "me" / ".cache" / "harness"
    str(base).encode()
    assert str(base) in folder_note()
    assert recorded_folder() == base


@pytest.mark.parametrize("unusable", UNUSABLE, indirect=True)
def test_folder_of_the_user_is_used_as_it_is(
    unusable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "own"))
    assert base_folder() == tmp_path / "own"
    assert folder_note() == ""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "used"))
    assert not (base_folder() / ".gitignore").exists()


@pytest.mark.parametrize("unusable", UNUSABLE, indirect=True)
def test_a_folder_is_asked_for_in_one_line_if_none_can_be_written(
    unusable: Path, tmp_path: Path
) -> None:
    (tmp_path / "me").write_text("a file")
    with pytest.raises(UsageError) as told:
        base_folder()
    line = str(told.value)
    assert line.isprintable()
    assert line.endswith("; name a folder that can be written by --dir")
    assert line.count("cannot be written (") + line.count("is not UTF-8") == 2


def test_recorded_runs_are_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.chdir(tmp_path)
    (base_folder() / HISTORY).mkdir()

    def fail(*, dir: Path) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(dir))

    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    assert recorded_folder() == tmp_path / ".harness"


def test_fresh_folders_are_new_and_closing_removes_all(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "gw0")
    made = [folder.new_folder("home"), folder.new_folder("work"), folder.new_folder("home")]
    assert len(set(made)) == 3
    assert all(one.is_dir() and not list(one.iterdir()) for one in made)
    (made[0] / "file").write_text("x")
    folder.close()
    assert not folder.path.exists()


def test_workers_of_one_process_do_not_share_a_folder(tmp_path: Path) -> None:
    one, two = RunFolder(tmp_path, "gw0"), RunFolder(tmp_path, "gw1")
    assert one.path != two.path
    one.close()
    assert two.path.is_dir()


def test_sweep_removes_folders_of_the_dead_and_no_others(tmp_path: Path, dead_pid: int) -> None:
    runs = tmp_path / "run"
    kept = [f"{os.getpid()}-main", "notes-1", "readme"]
    for name in (f"{dead_pid}-gw1", *kept):
        (runs / name / "home1").mkdir(parents=True)
    remove_dead_runs(tmp_path)
    assert sorted(folder.name for folder in runs.iterdir()) == sorted(kept)


def test_sweep_ends_the_processes_of_the_dead_and_no_others(tmp_path: Path, dead_pid: int) -> None:
    owner = f"{dead_pid}-gw1"
    (tmp_path / "run" / owner).mkdir(parents=True)
    theirs, ours = (
        subprocess.Popen(WAIT, stdin=subprocess.PIPE, env={**os.environ, MARK: f"{mark}:0"})
        for mark in (owner, f"{owner}2")
    )
    try:
        remove_dead_runs(tmp_path)
        assert theirs.wait(10) == -9
        assert psutil.Process(ours.pid).is_running()
        assert ours.poll() is None
    finally:
        for process in (theirs, ours):
            process.kill()
            process.communicate()


def test_worker_of_ours_that_is_known_to_have_died_is_swept_while_it_is_on_its_way_out(
    tmp_path: Path,
) -> None:
    dying = subprocess.Popen(WAIT, stdin=subprocess.PIPE)
    try:
        runs = tmp_path / "run"
        others = [f"{dying.pid}-gw10", f"{os.getppid()}-gw1"]
        for name in (f"{dying.pid}-gw1", *others):
            (runs / name).mkdir(parents=True)
        remove_dead_runs(tmp_path, dead="gw1")
        assert sorted(folder.name for folder in runs.iterdir()) == sorted(others)
    finally:
        dying.kill()
        dying.communicate()


def test_sweep_of_nothing_is_nothing(tmp_path: Path) -> None:
    remove_dead_runs(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_home_gets_the_files_of_the_profile_with_its_values(tmp_path: Path) -> None:
    profile = parse_profile(
        'name = "x"\nextends = "none"\n[home."config.toml"]\nmodel = "m"\n'
        '[home."config.toml".providers.p]\nurl = "{model_url}/x"\ntimes = [1, 2]\n',
        "x",
    )
    write_home_files(tmp_path, profile, {"model_url": 'http://h/"v1"'})
    assert tomllib.loads((tmp_path / "config.toml").read_text()) == {
        "model": "m",
        "providers": {"p": {"url": 'http://h/"v1"/x', "times": [1, 2]}},
    }


def test_a_file_of_the_home_may_lie_in_a_folder_of_it(tmp_path: Path) -> None:
    profile = parse_profile('name = "x"\nextends = "none"\n[home."a/b/c.toml"]\nd = 1\n', "x")
    write_home_files(tmp_path, profile, {})
    assert tomllib.loads((tmp_path / "a" / "b" / "c.toml").read_text()) == {"d": 1}


def test_the_last_runs_are_kept_and_small_ones_crowd_out_no_large_one(tmp_path: Path) -> None:
    for number in range(MAX_SMALL_RUNS_KEPT + 3):
        (tmp_path / HISTORY / f"2026-{number:02}").mkdir(parents=True)
    for number in range(MAX_LARGE_RUNS_KEPT + 2):
        run = tmp_path / HISTORY / f"2025-{number:02}" / "turns"
        run.mkdir(parents=True)
        for trace in range(LARGE_RUN_TRACES + 1):
            (run / f"{trace}.jsonl").touch()
    remove_old_runs(tmp_path)
    kept = sorted(one.name for one in (tmp_path / HISTORY).iterdir())
    assert kept == [
        *(f"2025-{number:02}" for number in range(2, MAX_LARGE_RUNS_KEPT + 2)),
        *(f"2026-{number:02}" for number in range(3, MAX_SMALL_RUNS_KEPT + 3)),
    ]


def test_a_kept_trace_stays_when_the_next_run_writes_over_the_first(tmp_path: Path) -> None:
    trace = tmp_path / "traces" / "a.jsonl"
    trace.parent.mkdir()
    trace.write_text("first", "utf-8")
    place = keep_trace(tmp_path, "run", trace, "turns/a")
    later = tmp_path / "part"
    later.write_text("second", "utf-8")
    later.replace(trace)
    assert (place.read_text("utf-8"), trace.read_text("utf-8")) == ("first", "second")
    assert place == tmp_path / HISTORY / "run" / "turns" / "a.jsonl"
