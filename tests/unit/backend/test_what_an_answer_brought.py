"""The marks of a model call: texts, tool calls, and their outputs."""

from __future__ import annotations

import json
from typing import Any

from harness.model.model import ScriptedModel
from harness.model.performance import MAX_TEXT_CHARACTERS, StreamCut
from harness.model.script import ModelStep
from harness.model.tools import BUILT_IN_ROWS
from harness.model.wire.responses import ResponsesEncoder
from harness.trace.marks import CallEnd, MarkBody, ModelCall, ModelEnd, ModelMessage

Marks = list[MarkBody]
EXEC = {"type": "function", "name": "exec_command", "parameters": {}}


async def played(*steps: dict[str, Any], calls: int = 0, **body: Any) -> Marks:
    """The marks of a model whose steps were each asked for once."""
    marks: Marks = []
    script = [ModelStep.model_validate(step) for step in steps]
    model = ScriptedModel(
        script,
        ResponsesEncoder(),
        mark=marks.append,
        tools=BUILT_IN_ROWS,
    )
    for _ in range(calls or len(steps)):
        answer = model.answer(json.dumps({"model": "m", "input": [], **body}).encode())
        assert answer.chunks is not None
        try:
            async for _ in answer.chunks:
                pass
        except StreamCut:
            continue
    return marks


def ends(marks: Marks) -> list[ModelEnd]:
    return [mark for mark in marks if isinstance(mark, ModelEnd)]


async def test_messages_are_kept_with_their_phase() -> None:
    first = {"message": {"deltas": ["Let me ", "look."], "phase": "commentary"}}
    (end,) = ends(await played({"reply": [first, {"message": "Found."}]}))
    assert end.texts == (ModelMessage("Let me look.", "commentary"), ModelMessage("Found."))
    assert end.tools == 0


async def test_tools_are_counted() -> None:
    (end,) = ends(await played({"reply": [{"run": "ls"}, {"run": "pwd"}]}, tools=[EXEC]))
    assert (end.tools, end.texts) == (2, ())


async def test_of_an_answer_that_was_cut_what_came_is_kept() -> None:
    cut = {"message": {"deltas": ["half", {"disconnect": True}, " more"]}}
    (end,) = ends(await played({"reply": [cut]}))
    assert (end.outcome, end.texts) == (CallEnd.DISCONNECTED, (ModelMessage("half"),))


async def test_a_long_text_is_cut() -> None:
    pieces = ["x" * (MAX_TEXT_CHARACTERS - 1), "yz", "more"]
    (end,) = ends(await played({"reply": [{"message": {"deltas": pieces}}]}))
    assert end.texts[0].text == "x" * (MAX_TEXT_CHARACTERS - 1) + "y"


async def test_an_answer_that_is_odd_in_itself_has_no_texts() -> None:
    odd = {"malformed": {"bytes": "data: {\n\n"}}
    (end,) = ends(await played({"reply": [odd, {"message": "after it"}]}))
    assert (end.outcome, end.texts) == (CallEnd.COMPLETED, ())


async def test_a_plan_and_what_is_said_beyond_the_script_are_no_texts() -> None:
    marks = await played({"reply": [{"plan_item": "1. look"}]}, calls=2)
    assert [end.outcome for end in ends(marks)] == [CallEnd.COMPLETED] * 2
    assert [end.texts for end in ends(marks)] == [(), ()]


async def test_the_next_call_tells_what_came_of_the_tools() -> None:
    marks: Marks = []
    script = [
        ModelStep.model_validate({"reply": [{"run": "ls"}]}),
        ModelStep.model_validate({"reply": [{"message": "done"}]}),
    ]
    model = ScriptedModel(
        script,
        ResponsesEncoder(),
        mark=marks.append,
        tools=BUILT_IN_ROWS,
    )
    body: dict[str, Any] = {"model": "m", "input": [], "tools": [EXEC]}
    for _ in range(2):
        answer = model.answer(json.dumps(body).encode())
        assert answer.chunks is not None
        async for _ in answer.chunks:
            pass
        done = {"type": "function_call_output", "call_id": model.calls[0].tool_calls[0]}
        other = {"type": "function_call_output", "call_id": "of-a-turn-before", "output": "old"}
        body["input"] = [other, {**done, "output": "made.txt\n"}]
    asked = [mark for mark in marks if isinstance(mark, ModelCall)]
    assert [call.outputs for call in asked] == [(), ("made.txt\n",)]
