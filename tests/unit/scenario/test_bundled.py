"""The bundled scenarios use the whole of the language, and ask every method of the protocol."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.profile import load_profile
from harness.model.parts import Part
from harness.model.script import ModelStep
from harness.model.tool_parts import Run
from harness.protocol.spec.loading import load_book
from harness.protocol.values import obj
from harness.scenario.bundled import bundled_folder, bundled_with
from harness.scenario.client_steps import WAIT_KINDS, AnswerStep, ClientStep
from harness.scenario.loader import Loaded, find_scenarios, load, scenario_id
from harness.scenario.model import Scenario

# What a step of its own sends.
SENT = {
    "start_thread": "thread/start",
    "start_turn": "turn/start",
    "interrupt": "turn/interrupt",
    "steer": "turn/steer",
    "read_thread": "thread/read",
}
# What is allowed so may hold for all commands of a program, in every scenario that uses the home.
LASTING_DECISIONS = ("acceptWithExecpolicyAmendment", "applyNetworkPolicyAmendment")
REAL = [load_profile("codex-0.107"), load_profile("codex-0.169"), load_profile("reference")]


@pytest.fixture(scope="module")
def bundled() -> list[Loaded]:
    root = bundled_folder()
    return [load(path, root=root) for _, path in find_scenarios([root])]


def _keys(union: Any) -> set[str]:
    """The key of each alternative of a tagged union."""
    alternatives = union.__origin__.__args__
    return {next(iter(one.__origin__.model_fields)) for one in alternatives}


def _model_steps(loaded: Loaded) -> Iterator[ModelStep]:
    for script in loaded.scenario.scripts().values():
        yield from script


def _playable(loaded: Loaded) -> bool:
    """Return True if one of our servers offers the features that the scenario needs."""
    return any(set(loaded.scenario.needs) <= set(profile.capabilities) for profile in REAL)


def test_every_scenario_can_be_played_on_some_server_that_we_have(bundled: list[Loaded]) -> None:
    assert [one.id for one in bundled if not _playable(one)] == []


def test_every_client_step_is_used(bundled: list[Loaded]) -> None:
    used = {next(iter(type(step).model_fields)) for one in bundled for step in one.scenario.steps}
    assert _keys(ClientStep) - used == set()


def test_every_model_part_is_used(bundled: list[Loaded]) -> None:
    entries = (entry for one in bundled for _, entry in one.scenario.model_entries())
    used = {next(iter(type(entry).model_fields)) for entry in entries if not isinstance(entry, str)}
    assert _keys(Part) - used == set()


def test_every_thing_that_can_be_waited_for_is_waited_for(bundled: list[Loaded]) -> None:
    waits = [
        obj(step.model_dump(exclude_unset=True)) for one in bundled for step in one.scenario.steps
    ]
    used = {key for wait in waits for key in obj(wait.get("wait"))}
    # A question of the server is taken by `answer`, which is what one does with it.
    assert set(WAIT_KINDS) - used <= {"request"}


def test_model_steps_fail_are_repeated_and_expect(bundled: list[Loaded]) -> None:
    steps = [step for one in bundled for step in _model_steps(one)]
    assert {"reply", "fail", "expect", "alias", "when"} == {
        key for step in steps for key in step.model_fields_set
    }
    assert {1, 2, "until-turn-ends"} <= {step.times for step in steps}


def test_every_key_of_a_scenario_is_used(bundled: list[Loaded]) -> None:
    used = {key for one in bundled for key in one.scenario.model_fields_set}
    # `strict_model` is for servers that one knows: an auxiliary call of a server is no failure.
    # `extensions` is for servers that have more than the protocol.
    # `faults` says nothing of a server: the examples of docs/scenarios.md are played in its place.
    assert set(Scenario.model_fields) - used <= {
        "strict_model",
        "extensions",
        "faults",
        "default_script",
        "answers",
    }


def test_every_method_is_asked_by_a_scenario_that_a_server_can_play(bundled: list[Loaded]) -> None:
    asked = {"initialize"}
    for one in filter(_playable, bundled):
        for step in one.scenario.steps:
            key = next(iter(type(step).model_fields))
            body = getattr(step, key)
            asked.add(body.method if key == "request" else SENT.get(key, ""))
    rows = load_book().methods
    ours = {row.method for row in rows if row.direction == "client-to-server"}
    assert ours - asked == set()


def test_a_scenario_reached_through_a_link_has_the_name_of_its_place(tmp_path: Path) -> None:
    link = tmp_path / "scenarios"
    link.symlink_to(bundled_folder())
    file = link / "turns" / "plain-turn.scenario.yaml"
    assert scenario_id(file, bundled_folder()) == "turns/plain-turn"
    assert scenario_id(tmp_path / "own.scenario.yaml", bundled_folder()) == "own"


def test_program_that_is_allowed_for_good_is_that_of_one_scenario_with_approvals(
    bundled: list[Loaded],
) -> None:
    allowed: dict[str, str] = {}
    scenarios_of: dict[str, set[str]] = defaultdict(set)
    for loaded in bundled:
        entries = (entry for _, entry in loaded.scenario.model_entries())
        programs = [one.run.command.split()[0] for one in entries if isinstance(one, Run)]
        answers = [one.answer for one in loaded.scenario.steps if isinstance(one, AnswerStep)]
        if any(one.decision in LASTING_DECISIONS for one in answers):
            allowed[programs[0]] = loaded.id
        for program in programs if answers else ():
            scenarios_of[program].add(loaded.id)
    assert len(allowed) == 17
    for program, name in allowed.items():
        assert scenarios_of[program] == {name}


def test_text_names_each_rule_and_capability_of_a_scenario(bundled: list[Loaded]) -> None:
    naming: defaultdict[str, set[str]] = defaultdict(set)
    for loaded in bundled:
        for word in (*loaded.scenario.covers, *loaded.scenario.needs):
            naming[word].add(loaded.id)
    assert len(naming) > 200
    for word, scenarios in naming.items():
        assert scenarios <= set(bundled_with(word)), word
    assert not list(bundled_with("no-such-rule"))
