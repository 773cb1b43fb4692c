"""Comparison of a model call with an earlier one, and texts that an output must lack."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from harness.model.model import Call, ScriptedModel
from harness.model.script import ModelStep
from harness.model.wire.responses import ResponsesEncoder
from harness.trace.marks import CallEnd, ModelEnd

Json = dict[str, Any]
SCRIPT = TypeAdapter(list[ModelStep])


def wanting(schema: Json) -> Json:
    return {"text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}}


def calls(script: list[Json], *bodies: Json) -> list[Call]:
    """The audit of calls with these bodies."""
    model = ScriptedModel(SCRIPT.validate_python(script), ResponsesEncoder())
    for body in bodies:
        model.answer(json.dumps({"input": [], **body}).encode())
    return model.calls


def second(expect: Json, *bodies: Json) -> list[str]:
    """The problems of the second call, compared with the first, whose step is `first`."""
    script = [{"as": "first", "reply": []}, {"expect": expect, "reply": []}]
    return calls(script, *bodies)[1].problems


def test_the_same_model_is_asked() -> None:
    expect = {"same_model": "first"}
    assert second(expect, {"model": "a"}, {"model": "a"}) == []
    problems = second(expect, {"model": "a"}, {"model": "b"})
    assert problems == ["call 2: it asks the model 'b', and call 1 asked 'a'"]


@pytest.mark.parametrize("other", [{}, wanting({"type": "array"})], ids=["none", "another"])
def test_the_same_schema_is_asked_for(other: Json) -> None:
    first, expect = wanting({"type": "object"}), {"same_schema": "first"}
    assert second(expect, first, first) == []
    problems = second(expect, first, other)
    assert problems == ["call 2: it does not ask for the output schema that call 1 asked for"]


@pytest.mark.parametrize("other", [{}, wanting({"type": "array"})], ids=["none", "another"])
def test_another_schema_or_none_is_asked_for(other: Json) -> None:
    first, expect = wanting({"type": "object"}), {"other_schema": "first"}
    assert second(expect, first, other) == []
    problems = second(expect, first, first)
    assert problems == ["call 2: it asks for the output schema that call 1 asked for"]


@pytest.mark.parametrize("key", ["same_schema", "other_schema"])
def test_where_no_schema_was_asked_for_none_is_compared(key: str) -> None:
    assert second({key: "first"}, {}, wanting({"type": "object"})) == []
    assert second({key: "first"}, {}, {}) == []


def test_a_comparison_with_a_call_that_was_not_made_is_noted() -> None:
    script = [{"expect": {"same_model": "later"}, "reply": []}, {"as": "later", "reply": []}]
    assert calls(script, {})[0].problems == [
        "call 1: no call of the step 'later' was made before it"
    ]


def test_texts_that_an_output_must_lack_are_noted() -> None:
    wanted = {"outcome": "ok", "lacks": "secret"}
    script: list[Json] = [{"reply": []}, {"expect": {"tool_output": wanted}, "reply": []}]
    model = ScriptedModel(
        SCRIPT.validate_python(script), ResponsesEncoder(), outcomes={"ok": [".*"]}
    )
    model.answer(b'{"input": []}')
    model.calls[0].tool_calls.append("c1")
    model.calls[0].end = ModelEnd(call=1, outcome=CallEnd.COMPLETED)
    given = [
        {"type": "function_call", "call_id": "c1", "name": "x", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "a secret"},
    ]
    model.answer(json.dumps({"input": given}).encode())
    assert model.calls[1].problems == ["call 2: the tool output contains 'secret': 'a secret'"]
