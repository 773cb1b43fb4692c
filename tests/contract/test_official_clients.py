"""The providers' own Python clients, as callers of the scripted model.

Each script is answered over both wires, streamed and whole: what `openai` and `anthropic` make of
the answers is what the script says.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anthropic
import anyio
import openai
import pytest
import yaml
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState

from harness.model.model import ScriptedModel
from harness.model.script import ModelStep
from harness.model.server import model_server
from harness.model.wire.responses import ResponsesEncoder
from harness.trace.marks import CallEnd, ModelCall

from .test_models import SCRIPT, until

pytestmark = [pytest.mark.socket]

BOUND = 20.0
MODEL = "some-model"
MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "shell_command", "parameters": SHELL}}
TOOL: Any = {"name": "shell_command", "input_schema": SHELL}


@dataclass
class Heard:
    """An answer as a client parsed it; usage: input with the cached part, cached, output."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    usage: tuple[int, int, int] | None = None
    end: str | None = None
    model: str = ""
    deltas: list[str] = field(default_factory=list[str])


@dataclass
class Side:
    """The model, and a client of one wire."""

    url: str
    model: ScriptedModel
    wire: str
    streamed: bool
    marks: list[Any]

    async def ask(self, messages: list[Any] = MESSAGES, **more: Any) -> Heard:
        with anyio.fail_after(BOUND):
            return await (self._chat if self.wire == "chat" else self._messages)(messages, **more)

    async def _chat(self, messages: list[Any], **more: Any) -> Heard:
        heard = Heard()
        async with AsyncOpenAI(base_url=self.url, api_key="k", max_retries=0) as client:
            create: Any = client.chat.completions.create
            call = {"model": MODEL, "messages": messages, "tools": [CHAT_TOOL], **more}
            if self.streamed:
                state = ChatCompletionStreamState()
                options = {"stream_options": {"include_usage": True}, **call}
                async for chunk in await create(stream=True, **options):
                    state.handle_chunk(chunk)
                    for choice in chunk.choices:
                        heard.reasoning += getattr(choice.delta, "reasoning_content", None) or ""
                        heard.deltas += [choice.delta.content] if choice.delta.content else []
                whole: Any = state.get_final_completion()
            else:
                whole = await create(**call)
                heard.reasoning = getattr(whole.choices[0].message, "reasoning_content", "")
        (choice,) = whole.choices
        heard.text, heard.end, heard.model = (
            choice.message.content or "",
            choice.finish_reason,
            whole.model,
        )
        heard.calls = [
            (call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or []
        ]
        if whole.usage is not None:
            cached = whole.usage.prompt_tokens_details.cached_tokens
            heard.usage = (whole.usage.prompt_tokens, cached, whole.usage.completion_tokens)
        return heard

    async def _messages(self, messages: list[Any], **more: Any) -> Heard:
        heard = Heard()
        url = self.url.removesuffix("/v1")
        async with AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
            call: Any = {
                "model": MODEL,
                "max_tokens": 99,
                "messages": messages,
                "tools": [TOOL],
                **more,
            }
            if self.streamed:
                events: Any = client.messages.stream(**call)
                async with events as stream:
                    async for event in stream:
                        if event.type == "text":
                            heard.deltas.append(event.text)
                    whole: Any = await stream.get_final_message()
            else:
                whole = await client.messages.create(**call)
        for block in whole.content:
            match block.type:
                case "text":
                    heard.text += block.text
                case "thinking":
                    assert block.signature
                    heard.reasoning += block.thinking
                case "tool_use":
                    heard.calls.append((block.name, block.input))
                case _:
                    raise AssertionError(block)
        usage, cached = whole.usage, whole.usage.cache_read_input_tokens or 0
        heard.usage = (usage.input_tokens + cached, cached, usage.output_tokens)
        heard.end, heard.model = whole.stop_reason, whole.model
        return heard


@pytest.fixture(params=["chat streamed", "chat whole", "messages streamed", "messages whole"])
def serve(request: pytest.FixtureRequest) -> Any:
    wire, form = str(request.param).split()

    @asynccontextmanager
    async def make(text: str) -> AsyncGenerator[Side]:
        script: list[ModelStep] = SCRIPT.validate_python(yaml.safe_load(text))
        marks: list[Any] = []
        model = ScriptedModel(script, ResponsesEncoder(), mark=marks.append)
        async with model_server() as server:
            server.set_model(model)
            yield Side(server.url, model, wire, form == "streamed", marks)

    return make


async def test_text_reasoning_tool_calls_and_usage_are_as_scripted(serve: Any) -> None:
    script = """
    - reply:
        - reasoning: {raw: [["Let me ", "see."]]}
        - message: {deltas: ["Hello", " there, \\u00e4\\U0001F600"]}
        - run: "echo a rather long command line, so that its arguments come in pieces"
        - run: "ls"
        - usage: {input: 120, cached: 20, output: 7, reasoning: 3}
    - reply: [{message: "Done."}]
    """
    long = "echo a rather long command line, so that its arguments come in pieces"
    async with serve(script) as side:
        heard = await side.ask()
        second = await side.ask()
    assert (heard.text, heard.reasoning) == ("Hello there, ä😀", "Let me see.")
    assert heard.calls == [
        ("shell_command", {"command": long}),
        ("shell_command", {"command": "ls"}),
    ]
    assert heard.usage == (120, 20, 7)
    assert heard.end == {"chat": "tool_calls", "messages": "tool_use"}[side.wire]
    assert heard.deltas == (["Hello", " there, ä😀"] if side.streamed else [])
    assert (second.text, second.calls, second.usage) == ("Done.", [], (10, 0, 5))
    assert second.end == {"chat": "stop", "messages": "end_turn"}[side.wire]
    assert heard.model == MODEL
    first, _ = (call.end for call in side.model.calls)
    assert first is not None
    assert (first.outcome, first.usage, first.tools) == (CallEnd.COMPLETED, 127, 2)
    assert side.model.missing_tools == []


HISTORY: dict[str, list[Any]] = {
    "chat": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "shell_command", "arguments": '{"command": "ls"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Exit code: 0\nboat.txt"},
        {"role": "user", "content": "and now?"},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {
                    "type": "tool_use",
                    "id": "c1",
                    "name": "shell_command",
                    "input": {"command": "ls"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "Exit code: 0\nboat.txt"},
                {"type": "text", "text": "and now?"},
            ],
        },
    ],
}
SETTINGS: dict[str, Any] = {
    "chat": {
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}},
        },
    },
    "messages": {
        "system": "Be brief.",
        "output_config": {
            "effort": "low",
            "format": {"type": "json_schema", "schema": {"type": "object"}},
        },
    },
}


async def test_a_call_of_each_wire_is_read_into_the_same_form(serve: Any) -> None:
    script = """
    - expect: {input_contains: ["and now?", "boat.txt", "Be brief."], input_lacks: ["c2"]}
      reply: [{message: "A boat."}]
    """
    async with serve(script) as side:
        await side.ask(HISTORY[side.wire], **SETTINGS[side.wire])
    (call,) = side.model.calls
    assert call.problems == []
    encoder = ResponsesEncoder()
    assert encoder.outputs(call.body) == {"c1": "Exit code: 0\nboat.txt"}
    assert encoder.orphans(call.body) == []
    assert encoder.schema(call.body) == {"type": "object"}
    (tool,) = encoder.offered_tools(call.body)
    assert (tool.name, tool.parameters) == ("shell_command", frozenset({"command"}))
    assert [entry["type"] for entry in call.body["input"]] == [
        "message",
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    mark = next(mark for mark in side.marks if isinstance(mark, ModelCall))
    assert (mark.model, mark.effort, mark.schema) == (MODEL, "low", True)
    assert mark.user_texts == ("look", "", "and now?")
    assert (
        mark.images
        == encoder.call_contents(
            {
                "input": [
                    {
                        "content": [
                            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
                        ]
                    }
                ]
            }
        )["images"]
    )


@pytest.mark.parametrize(
    ("fail", "status", "kind"),
    [
        ("{status: 429, code: rate_limit_exceeded, retry_after: 3}", 429, "rate_limit_error"),
        ("{status: 529, message: too many}", 529, "overloaded_error"),
        ("{status: 401, code: invalid_api_key}", 401, "authentication_error"),
        ("{status: 400, message: bad}", 400, "invalid_request_error"),
        ("{status: 500}", 500, "api_error"),
        ("{code: server_is_overloaded, message: too many}", 0, "overloaded_error"),
    ],
)
async def test_failures_raise_the_errors_of_the_client(
    serve: Any, fail: str, status: int, kind: str
) -> None:
    async with serve(f"[{{fail: {fail}}}]") as side:
        with pytest.raises((openai.APIError, anthropic.APIError)) as raised:
            await side.ask()
    caught: Any = raised.value
    body = caught.body
    assert isinstance(caught, openai.APIError if side.wire == "chat" else anthropic.APIError)
    if side.wire == "messages":
        assert body == {
            "type": "error",
            "error": {"type": kind, "message": body["error"]["message"]},
        }
        assert ("too many" in body["error"]["message"]) is ("too many" in fail)
    elif "code" in fail:
        assert f"code: {body['code']}" in fail
    in_stream = 200 if side.streamed and side.wire == "messages" else None
    whole = 529 if side.wire == "messages" else 503
    expected = status or (in_stream if side.streamed else whole)
    assert getattr(caught, "status_code", None) == expected
    if "retry_after" in fail:
        response: Any = getattr(caught, "response")  # noqa: B009
        assert response.headers["retry-after"] == "3"
    (call,) = side.model.calls
    assert call.end is not None
    is_stream_failure = side.streamed and not status
    assert call.end.outcome is (CallEnd.FAILED if is_stream_failure else CallEnd.STATUS)


@pytest.mark.parametrize("place", ["disconnect: true", "disconnect: {before: response.completed}"])
async def test_a_cut_is_a_lost_connection(serve: Any, place: str) -> None:
    async with serve(f"[{{reply: [{{message: half}}, {{{place}}}]}}]") as side:
        with pytest.raises(Exception, match=r"(?i)peer closed|incomplete|connection"):
            await side.ask()
        await until(lambda: side.model.calls[0].end is not None)
    assert side.model.calls[0].outcome_text == "disconnected"


async def test_a_gate_holds_the_answer_until_it_opens(serve: Any) -> None:
    async with serve("[{reply: [{message: {deltas: [one, {hold: g}, ' two']}}]}]") as side:
        heard: list[Heard] = []

        async def ask() -> None:
            heard.append(await side.ask())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await until(lambda: side.model.open_streams == 1)
            assert heard == []
            side.model.gates.open("g")
    assert heard[0].text == "one two"


async def test_another_model_is_named_by_the_answer(serve: Any) -> None:
    async with serve("[{reply: [{message: x}, {reroute: {model: other}}]}]") as side:
        assert (await side.ask()).model == "other"


UNSAYABLE = {
    "{web_search: {query: a}}": ("web search", "web search"),
    "{message: {deltas: [a], phase: commentary}}": ("phase", "phase"),
    "{reasoning: {summary: [a]}}": ("summary", "summary"),
    "{message: a}, {message: b}": ("one text", ""),
    "{run: ls}, {message: a}": ("then its tool calls", ""),
}


@pytest.mark.parametrize("parts", UNSAYABLE)
async def test_a_part_that_a_wire_cannot_say_is_told_and_ends_the_script(
    serve: Any, parts: str
) -> None:
    async with serve(f"[{{reply: [{parts}]}}]") as side:
        heard = await side.ask()
    reason = UNSAYABLE[parts][side.wire == "messages"]
    assert side.model.is_stuck.is_set() is bool(reason)
    if reason:
        (unfit,) = side.model.missing_tools
        assert reason in unfit.reason
        assert (heard.text, heard.calls) == ("", [])
    else:
        assert side.model.missing_tools == []
        assert heard.text


async def test_usage_that_a_chat_call_does_not_ask_for_is_not_sent() -> None:
    script = SCRIPT.validate_python([{"reply": [{"message": "a"}]}, {"reply": [{"usage": {}}]}])
    model = ScriptedModel(script, ResponsesEncoder())
    async with model_server() as server:
        server.set_model(model)
        side = Side(server.url, model, "chat", True, [])
        heard = [await side.ask(stream_options={}) for _ in script]
    assert [one.usage for one in heard] == [None, None]
    assert model.calls[0].end is not None
    assert model.calls[0].end.usage == 0
    assert "include_usage" in model.missing_tools[0].reason


async def test_a_tool_that_takes_free_text_cannot_be_called() -> None:
    script = SCRIPT.validate_python([{"reply": [{"patch": {"add": {"a.txt": "a\n"}}}]}])
    model = ScriptedModel(script, ResponsesEncoder())
    tool: Any = {"type": "custom", "custom": {"name": "apply_patch"}}
    async with model_server() as server:
        server.set_model(model)
        heard = await Side(server.url, model, "chat", True, []).ask(tools=[tool])
    assert heard.calls == []
    (unfit,) = model.missing_tools
    assert unfit.reason == "Chat Completions calls functions only, and apply_patch takes free text"
