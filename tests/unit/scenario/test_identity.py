"""The id of a scenario is that of its file, whatever way led to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scenario.identity import SUFFIX, bundled_folder, root_of, scenario_id
from harness.scenario.loader import NO_TURN, Loaded, find_scenarios, load, load_all

GOOD = "title: Fine\nclient:\n  - start_thread: {as: t}\n"


def _file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(GOOD)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    _file(folder / "my" / f"hello{SUFFIX}")
    return folder


def test_a_bundled_scenario_is_named_below_their_folder() -> None:
    assert scenario_id(bundled_folder() / "turns" / f"plain-turn{SUFFIX}") == "turns/plain-turn"


@pytest.mark.parametrize("way", ["my/hello", "./my/hello", "my/../my/hello", "link/hello"])
def test_every_way_to_a_file_gives_one_id(
    way: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "link").symlink_to("my")
    monkeypatch.chdir(project)
    assert scenario_id(Path(way + SUFFIX)) == "my/hello"
    assert scenario_id(Path.cwd() / (way + SUFFIX)) == "my/hello"


@pytest.mark.parametrize("argument", ["my", "my/hello.scenario.yaml", "."])
def test_an_id_does_not_depend_on_the_folder_that_was_given(
    argument: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    ((root, file),) = find_scenarios([Path(argument)])
    assert scenario_id(file, root) == scenario_id(file) == load(file).id == "my/hello"


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "pytest.ini", "setup.cfg"])
def test_a_project_gives_its_files_the_same_id_from_everywhere(
    mark: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / mark).touch()
    file = project / "my" / f"hello{SUFFIX}"
    for here in (tmp_path, project, project / "my"):
        monkeypatch.chdir(here)
        assert scenario_id(file) == "my/hello"


def test_the_repository_counts_before_a_package_within_it(project: Path) -> None:
    (project / ".git").mkdir()
    (project / "my" / "pyproject.toml").touch()
    assert root_of(project / "my" / f"hello{SUFFIX}") == project


def test_files_outside_of_everything_keep_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    files = [_file(tmp_path / name / f"x{SUFFIX}") for name in ("a", "b")]
    ids = [scenario_id(file) for file in files]
    assert [id_.split("/")[-2:] for id_ in ids] == [["a", "x"], ["b", "x"]]
    assert not any(id_.startswith("/") for id_ in ids)


def test_two_files_with_one_id_are_an_error_that_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [_file(tmp_path / name / "my" / f"x{SUFFIX}") for name in ("one", "two")]
    for file in files:
        (file.parents[1] / ".git").mkdir()
    good, bad = load_all(files)
    assert isinstance(good, Loaded)
    assert str(bad) == (
        f"{files[1]}:1:1: its id my/x is that of {files[0]} too; rename one, or use them apart"
    )


def test_one_file_reached_twice_is_no_error(project: Path) -> None:
    (project / ".git").mkdir()
    (project / "link").symlink_to("my")
    files = [project / way / f"hello{SUFFIX}" for way in ("my", "link")]
    assert [one.id for one in load_all(files) if isinstance(one, Loaded)] == ["my/hello"] * 2


def test_area_needs_and_own_words_are_tags(project: Path) -> None:
    (project / ".git").mkdir()
    file = project / "my" / f"hello{SUFFIX}"
    file.write_text(GOOD + "needs: [steering]\ntags: [smoke]\n")
    assert load(file).tags - {NO_TURN} == {"my", "steering", "smoke"}
