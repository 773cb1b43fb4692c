"""A scenario without `client`, for clients under test: commands that play that side reject it."""

from pathlib import Path

import pytest
from jsonschema_rs import validator_for
from typer.testing import CliRunner

from harness.cli.main import app
from harness.scenario.loader import ScenarioError, load, load_all, load_scenario, load_text
from harness.scenario.schema import json_schema

TWO_THREADS = """\
title: Two threads and no client
model:
  first:
    - reply: [{message: "One."}]
  second:
    - reply: [{message: "Two."}]
expect:
  turns: {one: completed, other: [completed, failed]}
  diffs: {third: {contains: [x]}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.scenario.yaml"
    path.write_text(TWO_THREADS, "utf-8")
    return path


def test_who_plays_the_client_refuses_it_and_says_what_to_do(file: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert caught.value.place == (1, 1)
    assert f"agent app-server --listen ws://127.0.0.1:0 --scenario {file}" in caught.value.message
    with pytest.raises(ScenarioError, match="no client"):
        load_text(TWO_THREADS)
    [found] = load_all([file])
    assert isinstance(found, ScenarioError)


def test_who_does_not_play_the_client_takes_it(file: Path) -> None:
    assert load(file, clientless=True).scenario.is_clientless
    assert load_scenario(file).is_clientless
    [found] = load_all([file], clientless=True)
    assert not isinstance(found, ScenarioError)


def test_threads_and_turns_are_those_that_the_file_names_in_its_order(file: Path) -> None:
    scenario = load_scenario(file)
    assert list(scenario.scripts()) == ["first", "second"]
    assert scenario.expected_turns() == ["one", "other", "third"]


def test_a_client_without_steps_is_a_mistake_and_none_at_all_is_not(tmp_path: Path) -> None:
    path = tmp_path / "empty.scenario.yaml"
    path.write_text("title: Nothing is done\nclient: []\n", "utf-8")
    with pytest.raises(ScenarioError) as caught:
        load(path, clientless=True)
    assert caught.value.place[0] == 2
    schema = validator_for(json_schema())
    assert schema.is_valid({"title": "No client"})
    assert not schema.is_valid({"title": "No step", "client": []})


def test_the_commands_that_only_read_files_take_it(file: Path) -> None:
    assert CliRunner().invoke(app, ["scenario", "validate", str(file)]).exit_code == 0
    listed = CliRunner().invoke(app, ["scenario", "list", str(file)])
    assert "Two threads and no client" in listed.output


def test_a_client_side_still_names_the_threads_and_turns(tmp_path: Path) -> None:
    path = tmp_path / "mine.scenario.yaml"
    path.write_text(TWO_THREADS + "client:\n  - start_thread: {as: first}\n", "utf-8")
    with pytest.raises(ScenarioError, match="second"):
        load(path, clientless=True)
