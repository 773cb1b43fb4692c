"""A baseline about one's own scenarios: a run of some of them, or of others, is judged nonetheless.

The scenarios lie in the folder `my` of a project, and are played on the reference server.
"""

import json
from pathlib import Path

import pytest
from command_line import Said, call

pytestmark = [pytest.mark.slow, pytest.mark.socket]

PLAIN = """\
title: a plain turn
tags: [{tag}]
model: [{{reply: [{{message: hello}}]}}]
client:
  - start_thread: {{as: t}}
  - start_turn: {{thread: t, text: hello, as: u}}
  - wait: {{turn: u}}
"""
OF_ALL_MINE = ("turn.id-shape", "my/*")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two scenarios of one's own, one of them tagged `smoke`."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "my").mkdir()
    for name, tag in (("plain", "smoke"), ("second", "slow")):
        file = tmp_path / "my" / f"{name}.scenario.yaml"
        file.write_text(PLAIN.format(tag=tag), "utf-8")
    return tmp_path


def run(project: Path, entry: tuple[str, str], *words: str) -> Said:
    rule, scenario = entry
    known = f'[[deviations]]\nrule = "{rule}"\nreason = "r"\nscenario = "{scenario}"\n'
    (project / "known.toml").write_text(known, "utf-8")
    return call(
        "harness", "run", "--target", "reference", "--baseline", "known.toml", *words, cwd=project
    )


@pytest.mark.parametrize(
    "words",
    [
        ["my/plain"],
        ["my", "-k", "plain"],
        ["my", "--tag", "smoke"],
        ["turns/plain-turn", "my/plain"],
        ["turns/plain-turn"],
    ],
    ids=" ".join,
)
def test_an_entry_about_more_of_ones_own_scenarios_than_a_run_plays_is_not_checked(
    words: list[str], project: Path
) -> None:
    said = run(project, OF_ALL_MINE, *words)
    assert (said.status, "baseline.stale" in said.out) == (0, False), said.out
    assert "turn.id-shape (scenario my/*)" in said.out


def test_an_entry_about_ones_own_scenarios_is_stale_when_all_of_them_were_played(
    project: Path,
) -> None:
    said = run(project, OF_ALL_MINE, "my", "--json", "report.json")
    assert (said.status, "baseline.stale" in said.out) == (1, True), said.out
    # The report says so too.
    assert json.loads((project / "report.json").read_text("utf-8"))["exit"] == 1


def test_an_entry_about_all_scenarios_is_not_checked_by_a_run_of_ones_own(project: Path) -> None:
    said = run(project, ("turn.id-shape", "*"), "my")
    assert (said.status, "baseline.stale" in said.out) == (0, False), said.out


def test_an_entry_about_ones_own_scenario_is_accepted_where_bundled_ones_are_played(
    project: Path,
) -> None:
    said = run(project, ("turn.completes", "my/second"), "turns/plain-turn")
    assert said.status == 0, said.err


@pytest.mark.parametrize("name", ["my/plian", "plain"])
def test_an_entry_about_no_scenario_of_ones_own_is_refused_with_the_right_one(
    name: str, project: Path
) -> None:
    for played in ("my/plain", "turns/plain-turn"):
        said = run(project, ("turn.completes", name), played)
        assert said.status == 2
        assert f"unknown scenario {name!r}; did you mean 'my/plain'?" in said.err
