"""The command line of `agent exec` for one turn."""

import pytest

from harness.client.target.profile import ExecProgram
from harness.play.agent_exec.player import TurnOptions, command_line, prompt_of
from harness.scenario.steps.context import StepFailed

USUAL = {"approvalPolicy": "never", "sandbox": "danger-full-access"}


def test_the_words_come_in_the_order_in_which_the_sdk_says_them() -> None:
    params = {**USUAL, "model": "small", "cwd": "/work"}
    wanted = TurnOptions(params, "thr_1", "/tmp/schema.json", ["a.png", "b.png"])
    assert command_line(ExecProgram(), wanted) == [
        *("exec", "--experimental-json", "--skip-git-repo-check"),
        *("--model", "small", "--sandbox", "danger-full-access", "--cd", "/work"),
        *("--output-schema", "/tmp/schema.json"),
        *("--config", 'approval_policy="never"'),
        *("resume", "thr_1", "--image", "a.png", "--image", "b.png"),
    ]


def test_a_program_is_told_only_what_is_wanted() -> None:
    assert command_line(ExecProgram(sandbox=[], setting=[]), TurnOptions(USUAL)) == [
        "exec",
        "--experimental-json",
        "--skip-git-repo-check",
    ]


@pytest.mark.parametrize(
    ("program", "wanted", "lacks"),
    [
        (ExecProgram(resume=[]), TurnOptions({}, thread="thr_1"), "storage"),
        (ExecProgram(schema_file=[]), TurnOptions({}, schema_file="a.json"), "output-schema"),
        (ExecProgram(sandbox=[]), TurnOptions({"sandbox": "read-only"}), "core"),
        (ExecProgram(image=[]), TurnOptions({}, images=["a.png"]), "core"),
    ],
)
def test_options_without_a_word_are_not_offered(
    program: ExecProgram, wanted: TurnOptions, lacks: str
) -> None:
    with pytest.raises(StepFailed) as caught:
        command_line(program, wanted)
    assert caught.value.capability == lacks


def test_an_input_is_a_prompt_and_images() -> None:
    entries = [
        {"type": "text", "text": "look at"},
        {"type": "localImage", "path": "a.png"},
        {"type": "text", "text": "this"},
    ]
    assert prompt_of(entries, None) == ("look at\n\nthis", ["a.png"])
    assert prompt_of(None, "hello") == ("hello", [])
