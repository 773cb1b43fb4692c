"""A race that no scenario of the run has gives an error with advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.suite.race_problems import race_problem
from harness.scenario.bundled import bundled_files

PLAIN = """
title: a plain turn
model: [{reply: [{message: {deltas: [one, two]}}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hello, as: u}
  - wait: {turn: u}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plain.scenario.yaml"


def test_file_without_the_key_is_told_which_line_to_add(file: Path) -> None:
    file.write_text(PLAIN)
    said = f"{file} has no key races; add the line races: [interrupt]"
    assert race_problem("interrupt", [file]) == said
    assert race_problem("interrupt@delta:1", [file.parent]) == said
    assert race_problem("all", [file]) == f"{file} has no key races; add the line races: all"


def test_file_with_another_action_is_told_what_to_make_of_its_key(file: Path) -> None:
    file.write_text(f"races: [steer]{PLAIN}")
    said = f"the key races of {file} has steer; make it races: [interrupt, steer]"
    assert race_problem("interrupt", [file]) == said


def test_folder_without_such_a_race_is_told_of_all_its_files(file: Path) -> None:
    file.write_text(PLAIN)
    (file.parent / "other.scenario.yaml").write_text(PLAIN)
    said = "none of the 2 files has a key races with it; add the line races: [interrupt]"
    assert race_problem("interrupt", [file.parent]) == said


def test_unknown_position_is_answered_with_those_that_there_are(file: Path) -> None:
    file.write_text(f"races: [interrupt]{PLAIN}")
    said = race_problem("interrupt@delta:99", [file])
    assert said.startswith("unknown position 'delta:99'; did you mean 'delta:")
    assert "expected one of: " in race_problem("interrupt@zzz", [file])
    assert "unknown position" in race_problem("interrupt@delta:99", bundled_files().values())


def test_nothing_is_said_where_something_is_chosen_or_nothing_can_be_read(file: Path) -> None:
    file.write_text(f"races: [interrupt]{PLAIN}")
    assert race_problem("interrupt", [file]) == ""
    assert race_problem("interrupt@delta:1,steer", [file]) == ""
    file.write_text("title: 1\n")
    assert race_problem("interrupt", [file]) == ""
    assert race_problem("interrupt", [file.parent / "test_theirs.py"]) == ""
