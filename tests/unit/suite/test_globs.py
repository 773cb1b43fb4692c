"""Deviations about scenarios: what exists is accepted wherever it lies, all else is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scenario.bundled import bundled_folder
from harness.suite.globs import Spoken, check_globs
from harness.target.profile import ProfileError, builtin_names, load_profile
from harness.target.tomltext import Where

BUNDLED = [bundled_folder()]


def check(glob: str, *given: Path) -> None:
    check_globs([Spoken(glob, Where("known.toml", 7, 12))], given)


@pytest.mark.parametrize(
    "glob",
    [
        "*",
        "turns/plain-turn",
        "failures/*",
        "*search",
        "turns/plain-tur?",
        "fuzz",
        "turns/plain-turn@interrupt",
        "*@interrupt@*",
        "*@steer@model:done",
        "turns/plain-turn@*@delta:1",
        "*interrupt*",
    ],
)
def test_a_glob_that_fits_a_bundled_scenario_or_a_race_of_one_is_accepted(glob: str) -> None:
    check(glob, *BUNDLED)


@pytest.mark.parametrize(
    ("glob", "near"),
    [
        ("failurs/*", "did you mean 'failures/*'?"),
        ("turns/plain-trun", "did you mean 'turns/plain-turn'?"),
        ("turns/plain-turn/*", "did you mean"),
        ("zzz", "such as: "),
        ("turns/plain-turn@interupt", "did you mean 'turns/plain-turn'?"),
        ("turns/plain-turn@interrupt@dleta:1", "did you mean 'turns/plain-turn'?"),
    ],
)
def test_a_glob_that_fits_nothing_is_refused_with_the_nearest(glob: str, near: str) -> None:
    with pytest.raises(ProfileError) as caught:
        check(glob, *BUNDLED)
    assert str(caught.value).startswith(f"known.toml:7:12: scenario: unknown scenario {glob!r}")
    assert near in str(caught.value)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders of scenarios of one's own, in the current folder."""
    for name in ("one/area/first", "one/second", "two/third"):
        file = tmp_path / "mine" / f"{name}.scenario.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine"


@pytest.mark.parametrize(
    "glob", ["area/first", "one/area/first", "second", "mine/one/*", "*/first"]
)
def test_ones_own_scenarios_are_known_by_every_name_that_a_run_gives_them(
    glob: str, mine: Path
) -> None:
    check(glob, mine)
    check(glob, mine / "one")
    check(glob, mine, *BUNDLED)


def test_a_run_of_one_file_knows_those_beside_it(mine: Path) -> None:
    check("second", mine / "one/second.scenario.yaml")
    check("area/*", mine / "one/second.scenario.yaml")


def test_a_run_of_one_folder_knows_the_other_that_an_entry_names(mine: Path) -> None:
    check("two/third", mine / "one")
    check("mine/two/*", mine / "one")


@pytest.mark.parametrize("glob", ["two/thrid", "tow/third", "secnd"])
def test_a_misspelt_one_of_ones_own_is_refused(glob: str, mine: Path) -> None:
    with pytest.raises(ProfileError, match="unknown scenario"):
        check(glob, mine / "one")


def test_a_raced_one_of_ones_own_is_known(mine: Path) -> None:
    check("second@interrupt@delta:1", mine / "one")
    with pytest.raises(ProfileError, match="unknown scenario"):
        check("second@interupt", mine / "one")


@pytest.mark.parametrize("name", builtin_names())
def test_every_deviation_of_a_built_in_profile_is_about_a_scenario(name: str) -> None:
    # The examples of docs/scenarios.md are played as .harness/examples/documented/NAME.
    globs = [one.scenario for one in load_profile(name).deviations]
    for glob in globs:
        if not glob.startswith("*/documented/"):
            check(glob, *BUNDLED)
