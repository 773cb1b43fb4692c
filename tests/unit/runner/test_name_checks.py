"""Unknown names in profiles and baselines: one line, before a server is started."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.profile import builtin_names, load_profile
from harness.errors import UsageError
from harness.model.tool_parts import McpCall, ViewImage
from harness.model.tools import VALUES_OF_INTENT, intent_of
from harness.play.config import configure
from harness.play.name_checks import check_profile
from harness.protocol.spec.loading import load_book

HEAD = f'name = "mine"\ncommand = ["{sys.executable}", "-c", "pass"]\n'


def refused(folder: Path, text: str, **options: Any) -> str:
    path = folder / "mine.toml"
    path.write_text(HEAD + text, "utf-8")
    with pytest.raises(UsageError) as caught:
        configure(target=str(path), **options)
    (line,) = str(caught.value).splitlines()
    return line.replace(f"{folder}/", "")


MISTAKES = {
    "a capability": (
        'capabilities = ["core",\n  "comand-execution"]',
        "mine.toml:4:3: capabilities: unknown capability 'comand-execution'; did you mean "
        "'command-execution'?",
    ),
    "capabilities without core": (
        'capabilities = ["deltas"]',
        "mine.toml:3:16: capabilities: 'core' is missing; without it no scenario can be played: "
        "add it",
    ),
    "no capabilities at all": (
        "capabilities = []",
        "mine.toml:3:16: capabilities: 'core' is missing",
    ),
    "a capability of turn": (
        '[turn.plam.collaborationMode]\nmode = "plan"',
        "mine.toml:3:7: turn: unknown capability 'plam'; did you mean 'plan'?",
    ),
    "the barrier": (
        'barrier = "thread/raed"',
        "mine.toml:3:11: barrier: unknown request 'thread/raed'; did you mean 'thread/read'?",
    ),
    "the beginning of a time": (
        '[[times]]\nfrom = "turn/strat"\nto = "turn/started"\nwithin = "1s"',
        "mine.toml:4:8: times: unknown message 'turn/strat'; did you mean 'turn/start'?",
    ),
    "the end of a time": (
        '[[times]]\nfrom = "turn/start"\nwithin = "1s"\nto = "turn/interrupt"',
        "mine.toml:6:6: times: unknown message of the server 'turn/interrupt'",
    ),
    "an answer to what nobody answers": (
        '[[times]]\nfrom = "turn/started"\nwithin = "1s"',
        "mine.toml:4:8: times: unknown request 'turn/started'",
    ),
    "a barrier that only the server sends": (
        'barrier = "turn/completed"',
        "mine.toml:3:11: barrier: unknown request 'turn/completed'; expected one",
    ),
    "the type of a rename": (
        '[names]\n"TurnEror.agentErrorInfo" = "x"',
        "mine.toml:4:1: names: unknown type 'TurnEror'; did you mean 'TurnError'?",
    ),
    "the member of a rename": (
        '[names]\n"TurnError.agentErorInfo" = "x"',
        "mine.toml:4:1: names: unknown member of TurnError 'agentErorInfo'; did you mean "
        "'agentErrorInfo'?",
    ),
    "a rename without a type": (
        'names.agentErrorInfo = "x"',
        "mine.toml:3:7: names: 'agentErrorInfo': expected TYPE.MEMBER",
    ),
    "a rename to nothing": ('[names]\n"TurnError.message" = ""', "mine.toml:4:23: names: an empty"),
    "a policy of thread": (
        '[thread]\napprovalPolicy = "nevr"',
        "mine.toml:4:18: thread: found 'nevr'; expected one of never, untrusted, ",
    ),
    "a member of thread": (
        '[thread]\naprovalPolicy = "never"',
        "mine.toml:4:1: thread: unknown member 'aprovalPolicy'; did you mean 'approvalPolicy'?",
    ),
    "a value of turn": (
        'turn.plan.effort = "hihg"',
        "mine.toml:3:20: turn.plan: found 'hihg'; expected one of low, medium, high; did you mean",
    ),
    "a rule": (
        '[[deviations]]\nreason = "r"\nrule = "turn.completed-onse"',
        "mine.toml:5:8: unknown rule or finding 'turn.completed-onse'; did you mean "
        "'turn.completed-once'?",
    ),
    "a finding": (
        '[[deviations]]\nrule = "scenario.timeot"\nreason = "r"',
        "mine.toml:4:8: unknown rule or finding 'scenario.timeot'; did you mean 'scenario.timeout'",
    ),
    "a finding of hygiene": (
        '[[deviations]]\nrule = "hygiene.panik"\nreason = "r"',
        "mine.toml:4:8: unknown rule or finding 'hygiene.panik'; did you mean 'hygiene.panic'?",
    ),
    "a placeholder of the environment": (
        '[env]\nMODEL = "{model_ur}/v1"',
        "mine.toml:4:9: env: unknown placeholder '{model_ur}'; did you mean '{model_url}'?",
    ),
    "a placeholder of the command": (
        'listen_arguments = ["--at", "{listn}"]',
        "mine.toml:3:29: listen_arguments: unknown placeholder '{listn}'; did you mean '{listen}'",
    ),
    "a placeholder deep in the home": (
        '[home."config.toml"]\na = [{ b = "{hmoe}" }]',
        "mine.toml:4:12: home: unknown placeholder '{hmoe}'; did you mean '{home}'?",
    ),
    "a placeholder of a tool": (
        '[[tools]]\nintent = "run"\nname = "sh"\narguments = { line = "{comand}" }',
        "mine.toml:6:22: tools: unknown placeholder '{comand}'; did you mean '{command}'?",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_misspelt_name_in_a_profile_is_refused_at_its_place(case: str, tmp_path: Path) -> None:
    text, expected = MISTAKES[case]
    assert refused(tmp_path, text).startswith(expected)


LEFT_ALONE = """
initialize.capabilities.experimentalApi = true
thread.experimentalFlag = true
turn.plan.collaborationMode.mode = "plan"
env.A = "{} {a} {model} {cmd} ${home} {{cwd}} {name} {listen.port}"
[names]
"TurnError.agentErrorInfo" = "codexErrorInfo"
"AgentMessageItem.phase" = "kind"
[[tools]]
intent = "run"
name = "sh"
arguments = { line = "{command}", other = "{shell}", env = "{env}" }
[[deviations]]
rule = "leaks-state"
reason = "r"
"""


def test_names_that_only_the_server_knows_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + LEFT_ALONE, "utf-8")
    assert configure(target=str(path)).profile.name == "mine"


def test_the_first_of_several_is_told(tmp_path: Path) -> None:
    text = 'barrier = "x"\ncapabilities = ["y"]\n'
    assert refused(tmp_path, text).startswith("mine.toml:3:11: barrier: ")


def test_a_mistake_in_what_is_inherited_has_its_place_there(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('name = "base"\nbarrier = "thread/raed"\n')
    assert refused(tmp_path, 'extends = "base.toml"').startswith("base.toml:2:11: barrier: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[deviations]]\nrule =\n", "known.toml:2:7: not TOML: Invalid value"),
        ('[[deviation]]\nrule = "x"\n', "known.toml:1:3: unknown key 'deviation'; did you mean"),
        ('[[deviations]]\nrule = "x"\n', "known.toml:1:1: the key 'reason' is missing"),
        (
            '[[deviations]]\nrule = "turn.completes"\nreson = "r"\n',
            "known.toml:3:1: unknown key 'reson'; did you mean 'reason'?",
        ),
        (
            '[[deviations]]\nreason = "r"\nrule = "turn.complets"\n',
            "known.toml:3:8: unknown rule or finding 'turn.complets'; did you mean",
        ),
        (
            '[[deviations]]\nrule = "turn.completes"\nreason = "r"\nflaky = "yes"\n',
            "known.toml:4:9: deviations.flaky: it should be ",
        ),
    ],
)
def test_a_mistake_in_a_baseline_is_refused_at_its_place(
    text: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "known.toml").write_text(text)
    assert refused(tmp_path, "", baseline=str(tmp_path / "known.toml")).startswith(expected)


def test_an_unknown_name_for_require_is_answered_with_the_nearest(tmp_path: Path) -> None:
    expected = "--require: unknown capability 'reasonin'; did you mean 'reasoning'?"
    assert refused(tmp_path, "", require="core, reasonin") == expected


def test_a_misspelt_placeholder_of_server_cmd_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--server-cmd: unknown placeholder '\{model_ur\}'"):
        configure(server_cmd=f"{sys.executable} --model {{model_ur}}")


@pytest.mark.parametrize("name", builtin_names())
def test_every_name_in_a_built_in_profile_is_one(name: str) -> None:
    check_profile(load_profile(name), load_book())


def test_the_values_of_an_intent_are_those_that_its_templates_get() -> None:
    calls = [
        McpCall.model_validate({"mcp_call": {"server": "s", "tool": "t"}}),
        ViewImage.model_validate({"view_image": {"path": "x.png"}}),
    ]
    for call in calls:
        intent, values = intent_of(call)
        assert set(VALUES_OF_INTENT[intent]) == set(values)
