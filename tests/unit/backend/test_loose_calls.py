"""Requirements on a call with several right forms, and the words of an unknown server."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from harness.model.model import ScriptedModel
from harness.model.script import ModelStep
from harness.model.tools import OfferedTool, ToolRow, choose_tool
from harness.model.wire.responses import ResponsesEncoder

RUN = {"reply": [{"run": "echo caf\u00e9"}]}


def called(*steps: dict[str, Any], texts: str) -> list[str]:
    """The problems of one call whose input is this text."""
    script = [ModelStep.model_validate(step) for step in steps]
    model = ScriptedModel(script, ResponsesEncoder())
    model.answer(json.dumps({"input": texts}).encode())
    return model.calls[0].problems


def after_a_command(expect: dict[str, Any], output: str, *, loose: bool) -> list[str]:
    """The problems of the call that brings the output of a command."""
    script = [
        ModelStep.model_validate(RUN),
        ModelStep.model_validate({"expect": expect, "reply": [{"message": "So."}]}),
    ]
    model = ScriptedModel(script, ResponsesEncoder(), loose=loose)
    tool = {"type": "function", "name": "shell_command"}

    async def play() -> None:
        chunks = model.answer(json.dumps({"input": "go", "tools": [tool]}).encode()).chunks
        assert chunks is not None
        async for _ in chunks:
            pass

    anyio.run(play)
    (call_id,) = model.calls[0].tool_calls
    history = [
        {"type": "function_call", "call_id": call_id},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]
    model.answer(json.dumps({"input": history}).encode())
    return model.calls[1].problems


def test_one_of_several_texts_is_enough() -> None:
    step = {"expect": {"input_contains": ["and then?", ["a summary", "a story"]]}, **RUN}
    assert called(step, texts="a story; and then?") == []
    assert called(step, texts="and then?") == [
        "call 1: its input does not contain 'a summary' or 'a story'"
    ]
    assert called(step, texts="a summary") == ["call 1: its input does not contain 'and then?'"]


def test_step_is_for_calls_that_hold_what_it_says() -> None:
    mine = {"when": {"input_contains": [["one", "two"]]}, **RUN}
    other = {"expect": {"input_contains": ["three"]}, "reply": [{"message": "x"}]}
    assert called(mine, other, texts="two") == []
    assert called(mine, other, texts="three") == []
    assert called(mine, other, texts="four") == ["call 1: its input does not contain 'three'"]


@pytest.mark.parametrize(
    ("outcome", "output", "right"),
    [
        ("failed", "-- Exit code: null", True),
        ("declined", "Error: the user said no\nfailed", True),
        ("ok", "the end", True),
        ("ok", "Exit code: 3", False),
        ("failed", "Exit code: 0", False),
        ("declined", "Exit code: 0", False),
    ],
)
def test_words_of_a_server_that_nobody_knows_count_where_they_contradict(
    outcome: str, output: str, right: bool
) -> None:
    found = after_a_command({"tool_output": {"outcome": outcome}}, output, loose=True)
    assert (found == []) is right


def test_words_of_a_server_that_promised_them_count_always() -> None:
    expect = {"tool_output": {"outcome": "failed"}}
    (problem,) = after_a_command(expect, "-- Exit code: null", loose=False)
    assert "of no known wording, expected failed" in problem


@pytest.mark.parametrize("output", ["caf\u00e9", json.dumps({"text": "caf\u00e9"})])
def test_text_of_an_output_may_stand_within_json(output: str) -> None:
    expect = {"tool_output": {"outcome": "ok", "contains": "caf\u00e9"}}
    assert after_a_command(expect, output, loose=True) == []
    assert after_a_command(expect, "cafe", loose=True) != []


def test_command_that_wants_a_terminal_needs_a_tool_that_takes_the_wish() -> None:
    row = ToolRow("run", "sh", "", {"cmd": "{command}", "pty": "{tty}"})
    plain = ToolRow("run", "sh", "", {"cmd": "{command}"})
    wish = {"command": "ls", "tty": True}
    listed = OfferedTool("sh", parameters=frozenset({"cmd", "pty"}))
    short = OfferedTool("sh", parameters=frozenset({"cmd"}))

    def lacks(one: ToolRow, tool: OfferedTool, values: dict[str, Any]) -> str:
        chosen = choose_tool([one], [tool], "run", values)
        assert chosen is not None
        return chosen.lacks

    assert lacks(row, listed, wish) == lacks(row, OfferedTool("sh"), wish) == ""
    assert lacks(row, short, wish) == lacks(plain, OfferedTool("sh"), wish) == "terminal"
    assert lacks(plain, short, {"command": "ls", "tty": None}) == ""
