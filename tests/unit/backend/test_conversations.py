"""Assignment of a model call to a conversation, if the call does not name one."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.model.conversations import Conversations
from harness.model.model import ScriptedModel
from harness.model.script import ModelStep, Script
from harness.model.wire.responses import ResponsesEncoder

pytestmark = pytest.mark.anyio


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _make(script: Script, numbers: Iterator[int]) -> ScriptedModel:
    return ScriptedModel(script, ResponsesEncoder(), numbers=numbers)


STEP = ModelStep.model_validate({"reply": [{"message": "said"}]})


async def _asked(conversations: Conversations, *entries: dict[str, Any], **more: Any) -> int:
    """Make a call; gives the number of its conversation."""
    body = {"input": list(entries), **more}
    conversation, _ = conversations.conversation_of(body)
    answer = conversation.model.answer(json.dumps(body).encode())
    assert answer.chunks is not None
    async for _chunk in answer.chunks:
        pass
    conversations.record_call(conversation, conversation.model.calls[-1], 1)
    return conversation.number


async def test_one_script_without_loop_answers_everybody() -> None:
    conversations = Conversations({"": [STEP, STEP]}, _make, loop=False)
    assert await _asked(conversations, _user("a")) == 1
    assert await _asked(conversations, _user("b")) == 1


async def test_a_call_with_the_answer_in_it_goes_on() -> None:
    conversations = Conversations({"": [STEP, STEP]}, _make, loop=True)
    said = {"role": "assistant", "content": "said"}
    assert await _asked(conversations, _user("a")) == 1
    assert await _asked(conversations, _user("a"), said, _user("b")) == 1
    assert await _asked(conversations, _user("a")) == 2


async def test_after_a_compaction_the_summary_tells() -> None:
    conversations = Conversations({"": [STEP, STEP]}, _make, loop=True)
    assert await _asked(conversations, _user("a")) == 1
    assert await _asked(conversations, _user("summary: said"), _user("b")) == 1
    assert await _asked(conversations, _user("another"), _user("b")) == 2


async def test_a_key_counts_more_than_words() -> None:
    conversations = Conversations({"": [STEP, STEP]}, _make, loop=True)
    for key, number in (("k", 1), ("l", 2), ("k", 1)):
        assert await _asked(conversations, _user("a"), prompt_cache_key=key) == number


async def test_beyond_the_last_script_there_is_an_empty_one() -> None:
    conversations = Conversations({"a": [STEP], "b": [STEP]}, _make, loop=False)
    for text, number in (("x", 1), ("y", 2), ("z", 3)):
        assert await _asked(conversations, _user(text)) == number
    assert [one.alias for one in conversations.all] == ["a", "b", ""]
    assert [one.model.is_finished for one in conversations.all] == [True, True, True]
