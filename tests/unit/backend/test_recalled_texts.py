"""The marks of model calls name the earlier messages that a call contains."""

from __future__ import annotations

from typing import Any

from harness.model.recalled import MAX_TEXTS, EarlierTexts
from harness.trace.marks import ModelCall
from tests.unit.backend.test_what_an_answer_brought import played


def said(role: str, text: str) -> dict[str, Any]:
    """Return a message of a call."""
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a call with these messages."""
    return {"model": "m", "input": list(messages), **more}


def earlier(*texts: str) -> EarlierTexts:
    """Return these earlier texts."""
    known = EarlierTexts()
    known.add(texts)
    return known


def test_message_of_any_role_is_recalled() -> None:
    call = body(said("user", "one"), said("assistant", "two"), said("developer", "three"))
    assert earlier("one", "two", "four").contained_in(call) == ("one", "two")


def test_long_message_may_be_a_part_of_another_text() -> None:
    call = body(said("user", "Earlier: tell me about apples. Go on."))
    assert earlier("tell me about apples").contained_in(call) == ("tell me about apples",)


def test_short_message_must_be_a_whole_text() -> None:
    assert earlier("go on").contained_in(body(said("user", "go on then"))) == ()
    assert earlier("go on").contained_in(body(said("user", " go on\n"))) == ("go on",)


def test_text_that_the_mark_already_has_is_left_out() -> None:
    call = body(said("user", "one"), said("user", "two"))
    assert earlier("one", "two").contained_in(call, ("two",)) == ("one",)


def test_tool_output_is_not_a_message() -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "tell me about apples"}
    assert earlier("tell me about apples").contained_in(body(output)) == ()


def test_history_that_the_provider_keeps_is_unknown() -> None:
    assert earlier("one").contained_in(body(previous_response_id="r")) is None


def test_too_many_texts_are_not_compared() -> None:
    texts = [f"text {number}" for number in range(MAX_TEXTS)]
    assert earlier(*texts).contained_in(body()) == ()
    assert earlier(*texts, "one more").contained_in(body(said("user", "text 1"))) is None


async def test_calls_recall_inputs_and_answers_of_earlier_calls() -> None:
    steps = [{"reply": [{"message": "It is red."}]}, {"reply": [{"message": "And round."}]}]
    messages = [said("user", "colour?"), said("assistant", "It is red.")]
    marks = await played(*steps, input=messages)
    calls = [mark for mark in marks if isinstance(mark, ModelCall)]
    assert [call.recalled for call in calls] == [(), ("It is red.",)]
