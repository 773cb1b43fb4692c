"""All mistakes of a file are reported at once, whichever part of the loader finds them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.main import MAX_MISTAKES_SHOWN, app
from harness.play.lexicon import protocol_lexicon
from harness.scenario.loader import ScenarioError, load_text

FORM_NAMES_AND_WORDS = """\
tittle: One
client:
  - start_thread: {as: t}
  - start_turn: {thread: v, text: hi, as: t}
  - wait: {turn: t, status: complete, weir: 1}
  - request: {method: thread/read, params: {threadId: $t.thread.idd, includeTurn: true}}
expect: {items: [agentMesage]}
"""
MISTAKES = [
    "1:1: unknown key 'tittle'; did you mean 'title'?",
    "4:26: unknown thread 'v'; expected one of: t",
    "4:43: the alias 't' is taken already, by a thread; choose another name",
    "5:29: found 'complete'; expected 'completed', 'interrupted' or 'failed'; "
    "did you mean 'completed'?",
    "5:39: unknown key 'weir'; did you mean 'where'?",
    "6:55: $t.thread.idd: unknown member 'idd'; did you mean 'id'?",
    "6:70: unknown member 'includeTurn'; did you mean 'includeTurns'?",
    "7:18: unknown item type 'agentMesage'; did you mean 'agentMessage'?",
]
NO_STEP = """\
title: One
client:
  - start_thred: {as: t}
  - strat_turn: {thread: t, text: hi, as: u}
"""


def mistakes_of(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_text(text, name="s", lexicon=protocol_lexicon())
    return [mistake.line.removeprefix("s:") for mistake in caught.value.all_mistakes()]


def test_a_mistake_of_form_hides_no_mistake_in_a_name_or_a_word() -> None:
    assert mistakes_of(FORM_NAMES_AND_WORDS) == MISTAKES


def test_steps_that_do_not_exist_are_all_told_without_what_follows_from_them() -> None:
    assert [line.split(":")[0] for line in mistakes_of(NO_STEP)] == ["3", "4"]


def test_the_first_mistake_says_how_many_more_there_are() -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(FORM_NAMES_AND_WORDS, name="s", lexicon=protocol_lexicon())
    assert str(caught.value) == f"s:{MISTAKES[0]} ({len(MISTAKES) - 1} more)"


def test_validate_tells_all_of_them_and_unknown_names_in_its_json_too(tmp_path: Path) -> None:
    file = tmp_path / "a.scenario.yaml"
    file.write_text(FORM_NAMES_AND_WORDS, "utf-8")
    said = CliRunner().invoke(app, ["scenario", "validate", str(file), "nope", "--json", "-"])
    told = json.loads(said.stdout)
    assert said.exit_code == 1
    assert (told["scenarios"], told["bad"]) == (1, 2)
    assert told["mistakes"] == [f"{file}:{mistake}" for mistake in MISTAKES]
    (unknown,) = told["unknown"]
    assert unknown.startswith("nope: no such file or folder, and unknown scenario 'nope'")
    assert said.stderr.splitlines() == [unknown, *told["mistakes"]]


def test_validate_prints_a_bounded_number_of_lines_about_one_file(tmp_path: Path) -> None:
    file = tmp_path / "a.scenario.yaml"
    count = MAX_MISTAKES_SHOWN + 5
    steps = "  - wait: {turn: nope, status: completed}\n" * count
    file.write_text(f"title: one\nclient:\n  - start_thread: {{as: t}}\n{steps}", "utf-8")
    said = CliRunner().invoke(app, ["scenario", "validate", str(file)])
    lines = said.stderr.splitlines()
    assert len(lines) == MAX_MISTAKES_SHOWN + 1
    assert lines[-1] == f"{file}: 5 more mistakes"
