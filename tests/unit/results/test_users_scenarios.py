"""A user's own scenarios: those on disk, in the folders that a glob names."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.report.results.users_scenarios import user_scenarios_of
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
        assert user_scenarios_of(given).ids_in("my/*") == {"my/plain", "my/deep/one"}
    assert user_scenarios_of([]).ids_in("my/deep/*") == {"my/deep/one"}
    assert user_scenarios_of([]).ids_in("turns/*") == set()


def test_a_glob_without_a_folder_speaks_of_the_folders_of_the_run(project: Path) -> None:
    assert user_scenarios_of([]).ids_in("*") == set()
    assert user_scenarios_of([bundled_folder()]).ids_in("*") == set()
    mine = {"my/plain", "my/deep/one"}
    assert user_scenarios_of([Path("my/deep/one.scenario.yaml")]).ids_in("*") == mine
    assert user_scenarios_of([Path("my"), Path("other")]).ids_in("*") == {*mine, "other/two"}
    assert user_scenarios_of([project]).ids_in("*two") == {*mine, "other/two"}


def test_ids_are_told_below_the_project_from_within_it_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "my")
    assert user_scenarios_of([]).ids_in("my/deep/*") == {"my/deep/one"}
    assert user_scenarios_of([]).all_ids() == {"my/plain", "my/deep/one", "other/two"}


def test_a_project_elsewhere_is_that_of_the_file_which_is_played(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("away"))
    assert user_scenarios_of([]).ids_in("my/*") == set()
    assert "my/deep/one" in user_scenarios_of([project / "my/plain.scenario.yaml"]).ids_in("my/*")
