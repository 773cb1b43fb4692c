"""Answers of the scripted model, read as a recorder reads them, over each API."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic import TypeAdapter

from harness.model.model import ScriptedModel
from harness.model.performance import StreamCut
from harness.model.recorded_answers import READERS, AnswerReader
from harness.model.script import ModelStep
from harness.model.wire.registry import PATHS, wire_of
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.from_trace.recorded_timing import timed_deltas
from harness.scenario.from_trace.said_items import message_text
from harness.trace.marks import CallEnd, ModelEnd
from harness.trace.model_marks import ModelOutput, ModelPiece

pytestmark = pytest.mark.anyio
SCRIPT = TypeAdapter(list[ModelStep])
SHELL = {"name": "shell_command", "parameters": {}}
TOOLS: dict[str, Any] = {
    "/responses": {"type": "function", **SHELL},
    "/chat/completions": {"type": "function", "function": SHELL},
    "/messages": {"name": "shell_command", "input_schema": {}},
}
REPLY = [
    {"reasoning": {"raw": ["I think."]}},
    {"message": {"deltas": ["Let me ", "look."]}},
    {"run": "echo a command, long enough to come in pieces"},
    {"run": "ls"},
    {"usage": {"input": 120, "cached": 20, "output": 7, "reasoning": 3}},
]
FORMS = [(path, True) for path in PATHS] + [(path, False) for path in PATHS[1:]]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def read_answer(
    step: dict[str, Any], path: str, *, streamed: bool = True
) -> tuple[ModelOutput | None, ModelEnd]:
    """Return what a reader makes of an answer that comes byte by byte, half a second a chunk."""
    wire, clock = wire_of(path), Clock()
    assert wire is not None
    model = ScriptedModel(SCRIPT.validate_python([step]), ResponsesEncoder())
    body: dict[str, Any] = {"stream": streamed, "tools": [TOOLS[path]], "messages": [], "input": []}
    body["stream_options"] = {"include_usage": True}
    answer = model.answer(json.dumps(body).encode(), wire)
    reader = READERS.get(wire.name, AnswerReader)(1, clock)
    reader.start(answer.status)
    chunks: AsyncGenerator[bytes] | None = answer.chunks
    if chunks is None:
        reader.feed(answer.body)
        reader.end()
        return reader.result()
    try:
        async for chunk in chunks:
            clock.now += 0.5 if chunk else 0
            for place in range(len(chunk)):
                reader.feed(chunk[place : place + 1])
    except StreamCut:
        reader.note_cut()
    else:
        reader.end()
    return reader.result()


@pytest.mark.parametrize(("path", "streamed"), FORMS)
async def test_items_and_usage_are_read_in_the_form_of_the_responses_api(
    path: str, streamed: bool
) -> None:
    output, end = await read_answer({"reply": REPLY}, path, streamed=streamed)
    assert output is not None
    reasoning, message, long, short = map(json.loads, output.items)
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "I think."}]
    assert message_text(message) == "Let me look."
    assert [(call["type"], json.loads(call["arguments"])) for call in (long, short)] == [
        ("function_call", {"command": "echo a command, long enough to come in pieces"}),
        ("function_call", {"command": "ls"}),
    ]
    assert output.usage == (120, 20, 7, 3)
    assert (end.outcome, end.usage, end.tools) == (CallEnd.COMPLETED, 127, 2)
    assert [one.text for one in end.texts] == ["Let me look."]
    assert len(output.pieces) == 4


@pytest.mark.parametrize("path", PATHS)
async def test_pieces_keep_the_times_of_a_stream(path: str) -> None:
    output, _ = await read_answer({"reply": REPLY}, path)
    assert output is not None
    reasoning, message, long, short = output.pieces
    assert [piece.characters for piece in reasoning] == [8]
    assert [piece.characters for piece in message] == [7, 5]
    assert message[1] == ModelPiece(0.5, 5)
    assert [[piece.characters for piece in call] for call in (long, short)] == [[0], [0]]
    assert long[0].seconds > 0.5
    deltas = timed_deltas("Let me look.", message)
    assert [delta for delta in deltas if isinstance(delta, str)] == ["Let me ", "look."]
    assert deltas[-2:] == [{"delay": {"seconds": 0.5}}, "look."]


@pytest.mark.parametrize(
    ("step", "outcome", "code"),
    [
        ({"fail": {"code": "server_is_overloaded"}}, CallEnd.FAILED, "overloaded"),
        ({"fail": {"status": 429, "code": "rate_limit_exceeded"}}, CallEnd.STATUS, "rate_limit"),
        ({"reply": [{"message": "half"}, {"disconnect": True}]}, CallEnd.DISCONNECTED, ""),
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_failures_are_read(
    path: str, step: dict[str, Any], outcome: CallEnd, code: str
) -> None:
    output, end = await read_answer(step, path)
    assert end.outcome is outcome
    assert code in end.code
    assert (output is None) is (outcome is CallEnd.STATUS)


def test_long_waits_are_several_delays_and_the_last_piece_takes_the_rest() -> None:
    pieces = (ModelPiece(0.0001, 3), ModelPiece(12.5, 2))
    assert timed_deltas("masked secret", pieces) == [
        "mas",
        {"delay": {"seconds": 10.0}},
        {"delay": {"seconds": 2.5}},
        "ked secret",
    ]
