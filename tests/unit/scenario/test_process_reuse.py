"""Scenarios after which the process cannot be used by the next one."""

import pytest

from harness.scenario.loader import load_text

SHARED = {
    "restart": "[{restart: true}]",
    "restart-after-a-kill": "[{kill: true}, {restart: true}]",
    "restart-after-a-disconnect": "[{disconnect: true}, {restart: true}]",
    "reconnected": "[{disconnect: true}, {connect: main}]",
    "model-refuses": "[{model_listens: false}, {model_listens: true}]",
    "whole-line": '[{send_raw: {line: "{broken"}}]',
    "rest-of-a-line": '[{send_raw: {bytes: "{"}}, {send_raw: {hex: "7d0a"}}]',
    "removed-again": (
        '[{write_file: {path: "{home}/a", text: a}}, {remove_file: {path: "{home}/a"}}]'
    ),
    "read-again": "[{slow_reader: {reading: false}}, {slow_reader: {reading: true}}]",
    "own-file": '[{write_file: {path: "{cwd}/a", text: a}}, {remove_file: {path: "{cwd}/a"}}]',
    "others-connection": "[{connect: other}, {disconnect: other}]",
}
SPOILT = {
    "kill": "[{kill: true}]",
    "kill-after-a-restart": "[{restart: true}, {kill: true}]",
    "disconnect": "[{disconnect: true}]",
    "part-of-a-line": '[{send_raw: {bytes: "{"}}]',
    "not-read": "[{slow_reader: {reading: false}}]",
    "file-of-the-home": '[{write_file: {path: "{home}/a", text: a}}]',
    "file-of-others-removed": '[{remove_file: {path: "{home}/a"}}]',
    "file-above": '[{remove_file: {path: "{cwd}/../a"}}]',
}


def is_fresh(client: str, more: str = "") -> bool:
    return load_text(
        f"title: a scenario\n{more}client: {client}\n", name="one"
    ).scenario.needs_fresh_server


@pytest.mark.parametrize("client", SHARED.values(), ids=SHARED)
def test_process_can_be_used_by_the_next_scenario(client: str) -> None:
    assert not is_fresh(client)


@pytest.mark.parametrize("client", SPOILT.values(), ids=SPOILT)
def test_process_cannot_be_used_by_the_next_scenario(client: str) -> None:
    assert is_fresh(client)


def test_scenario_with_a_config_shares_its_process_with_others_of_that_config() -> None:
    assert not is_fresh("[{start_thread: {as: t}}]", "config: {model: other}\n")


def test_scenario_with_another_name_for_the_client_has_its_own_process() -> None:
    assert is_fresh("[{start_thread: {as: t}}]", "client_name: vscode\n")
