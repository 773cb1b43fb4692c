"""Deviations about scenarios: existing ones in any folder are valid, all others are errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.client.target.profile import builtin_names, load_profile
from harness.client.target.tomltext import Place
from harness.errors import UsageError
from harness.report.results.baseline_globs import EntryScenario, check_globs
from harness.scenario.bundled import bundled_folder

BUNDLED = [bundled_folder()]


def check(glob: str, *given: Path) -> None:
    check_globs([EntryScenario(glob, Place("known.toml", 7, 12))], given)


@pytest.mark.parametrize(
    "glob",
    [
        "*",
        "turns/plain-turn",
        "failures/*",
        "*search",
        "turns/plain-tur?",
        "fuzz",
        "load",
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
    with pytest.raises(UsageError) as caught:
        check(glob, *BUNDLED)
    assert str(caught.value).startswith(f"known.toml:7:12: scenario: unknown scenario {glob!r}")
    assert near in str(caught.value)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with scenarios in two folders, in the current folder."""
    (tmp_path / "pyproject.toml").touch()
    for name in ("my/area/first", "my/plain", "other/third"):
        file = tmp_path / f"{name}.scenario.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "glob",
    ["my/plain", "my/*", "my/area/first", "*/first", "other/third", "my/plain@interrupt@delta:1"],
)
def test_ones_own_scenarios_are_known_by_their_ids_whatever_is_played(
    glob: str, mine: Path
) -> None:
    check(glob)
    check(glob, *BUNDLED)
    check(glob, mine / "my")
    check(glob, mine / "other/third.scenario.yaml")


@pytest.mark.parametrize(
    ("glob", "near"),
    [
        ("my/plian", "my/plain"),
        ("plain", "my/plain"),
        ("area/first", "my/area/first"),
        ("mi/*", "my/*"),
        ("plain-turn", "turns/plain-turn"),
        ("my/plain@interupt", "my/plain"),
    ],
)
def test_an_unknown_id_of_ones_own_is_refused_with_the_id_that_was_meant(
    glob: str, near: str, mine: Path
) -> None:
    for given in ([], BUNDLED, [mine / "my"], [mine / "my/plain.scenario.yaml"]):
        with pytest.raises(UsageError) as caught:
            check(glob, *given)
        assert f"unknown scenario {glob!r}" in str(caught.value)
        assert repr(near) in str(caught.value)


@pytest.mark.parametrize("name", builtin_names())
def test_every_deviation_of_a_built_in_profile_is_about_a_scenario(name: str) -> None:
    # The examples of docs/scenarios.md are played as .harness/examples/documented/NAME.
    globs = [one.scenario for one in load_profile(name).deviations]
    for glob in globs:
        if not glob.startswith("*/documented/"):
            check(glob, *BUNDLED)
