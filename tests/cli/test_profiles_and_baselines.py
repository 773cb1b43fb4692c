"""Profiles and baselines as a newcomer writes them: the smallest works, a typo is one line."""

import sys
from pathlib import Path

import pytest
from command_line import ROOT, Said, call

pytestmark = [pytest.mark.slow, pytest.mark.socket]

PLAIN = "scenarios/turns/plain-turn.scenario.yaml"
SMALLEST = f"""\
name = "mine"
command = ["{sys.executable}", "{ROOT}/fixtures/servers/minimal.py"]
"""


def run(folder: Path, profile: str, *more: str) -> Said:
    path = folder / "mine.toml"
    path.write_text(profile, "utf-8")
    return call("harness", "run", "--target", str(path), *more, PLAIN)


def refusal(said: Said, *, status: int = 2) -> str:
    assert said.status == status
    assert "Traceback" not in said.err
    (line,) = (line for line in said.err.splitlines() if line)
    return line


def test_a_profile_of_name_and_command_is_enough_for_a_working_server(tmp_path: Path) -> None:
    said = run(tmp_path, SMALLEST)
    assert (said.status, "verdict: GREEN" in said.out) == (0, True), said.out


def test_one_that_inherits_nothing_tells_the_server_of_no_model(tmp_path: Path) -> None:
    said = run(tmp_path, f'{SMALLEST}extends = "none"\n')
    assert said.status == 1
    assert "setup.model-not-called" in said.out
    assert "BASE_URL" not in said.out
    words = " ".join(said.out.split())
    assert (
        "nothing tells the server that address: the profile 'mine' has {model_url} nowhere" in words
    )


def test_a_misspelt_key_of_a_profile_is_refused_at_its_place(tmp_path: Path) -> None:
    line = refusal(run(tmp_path, SMALLEST.replace("command", "comand")))
    assert line.endswith("mine.toml:2:1: unknown key 'comand'; did you mean 'command'?")


def test_a_baseline_about_no_scenario_is_refused_at_its_place(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[deviations]]\nrule = "turn.completes"\nreason = "r"\nscenario = "trns/*"\n')
    line = refusal(run(tmp_path, SMALLEST, "--baseline", str(known)))
    assert line == (
        f"ERROR: {known}:4:12: scenario: unknown scenario 'trns/*'; did you mean 'turns/*'?"
    )


def test_the_doctor_refuses_a_misspelt_profile_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'{SMALLEST}hygiene = "MUTS"\n')
    line = refusal(call("harness", "doctor", "--target", str(path)), status=2)
    assert line == (
        f"harness: {path}:3:11: hygiene: it should be 'INFO' or 'MUST'; did you mean 'MUST'?"
    )


def test_a_misspelt_word_of_a_scenario_is_refused_by_validate_and_by_run(tmp_path: Path) -> None:
    path = tmp_path / "hello.scenario.yaml"
    path.write_text("title: one\nclient:\n  - request: {method: thread/strat}\n")
    complaint = f"{path}:3:23: unknown request 'thread/strat'; did you mean 'thread/start'?"
    assert complaint in call("harness", "scenario", "validate", str(path)).err
    said = call("harness", "run", "--target", "reference", str(path))
    assert said.status == 2
    assert complaint in said.out
