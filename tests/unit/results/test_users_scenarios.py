"""Somebody's own scenarios: those that lie on the disk, by the folders that a glob names."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.report.results.users_scenarios import own_of
from harness.scenario.bundled import bundled_folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with scenarios in two folders, and the current folder."""
    (tmp_path / "pyproject.toml").touch()
    for name in ("my/plain", "my/deep/one", "other/two", ".venv/my/no", "node_modules/x/no"):
        file = tmp_path / f"{name}.scenario.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_glob_with_a_folder_speaks_of_all_scenarios_there_whatever_is_played(
    project: Path,
) -> None:
    for given in ([], [Path("my/plain.scenario.yaml")], [project / "other"], [bundled_folder()]):
        assert own_of(given).named_by("my/*") == {"my/plain", "my/deep/one"}
    assert own_of([]).named_by("my/deep/*") == {"my/deep/one"}
    assert own_of([]).named_by("turns/*") == set()


def test_a_glob_without_a_folder_speaks_of_the_folders_of_the_run(project: Path) -> None:
    assert own_of([]).named_by("*") == set()
    assert own_of([bundled_folder()]).named_by("*") == set()
    mine = {"my/plain", "my/deep/one"}
    assert own_of([Path("my/deep/one.scenario.yaml")]).named_by("*") == mine
    assert own_of([Path("my"), Path("other")]).named_by("*") == {*mine, "other/two"}
    assert own_of([project]).named_by("*two") == {*mine, "other/two"}


def test_ids_are_told_below_the_project_from_within_it_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "my")
    assert own_of([]).named_by("my/deep/*") == {"my/deep/one"}
    assert own_of([]).everywhere() == {"my/plain", "my/deep/one", "other/two"}


def test_a_project_elsewhere_is_that_of_the_file_which_is_played(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("away"))
    assert own_of([]).named_by("my/*") == set()
    assert "my/deep/one" in own_of([project / "my/plain.scenario.yaml"]).named_by("my/*")
