"""OpenAI Chat Completions: its requests in the form of the Responses API, and its answers.

Reasoning is `reasoning_content`, as DeepSeek, vLLM and others send it; OpenAI itself sends none.
Sources: the API's public reference, and the types of the Python client `openai`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.model.encoder import Stream, Unsayable
from harness.model.parts import Reasoning, UsageBody
from harness.model.script import ModelStep
from harness.model.tool_parts import ToolPart
from harness.model.tools import ChosenTool
from harness.model.wire.responses import ResponsesEncoder
from harness.model.wire.shared import (
    Chunk,
    PlainStream,
    argument_pieces,
    compact,
    is_text,
    unsayable_parts,
)
from harness.protocol.values import arr, obj, text

Json = dict[str, Any]
NAME = "Chat Completions"
_KEPT = ("model", "stream", "stream_options", "prompt_cache_key")
_OUTPUT = "response.output_item"
_ARGUMENTS = "response.function_call_arguments.delta"


class ChatStream(PlainStream):
    """The chunks of one answer; without `stream` nothing before one JSON object at the end."""

    def __init__(self, call: int, body: Mapping[str, Any]) -> None:
        self._call = call
        self._is_streamed = body.get("stream") is True
        self._model = text(body.get("model"))
        self._includes_usage = obj(body.get("stream_options")).get("include_usage") is True
        self._content: str | None = None
        self._reasoning = ""
        self._tool_calls: list[Json] = []

    def start(self, usage: UsageBody) -> bytes:
        """Return the first chunk, with the role."""
        return self._delta("response.created", {"role": "assistant", "content": ""})

    def start_message(self) -> bytes:
        """Return an empty chunk: a message begins with its first text."""
        self._content = ""
        return Chunk(f"{_OUTPUT}.added")

    def message_delta(self, text: str) -> bytes:
        """Return a chunk with a piece of the content."""
        self._content = (self._content or "") + text
        return self._delta("response.output_text.delta", {"content": text})

    def end_message(self, text: str, phase: str | None) -> bytes:
        """Return an empty chunk: the content has no end of its own."""
        return Chunk(f"{_OUTPUT}.done")

    def start_reasoning(self) -> bytes:
        """Return an empty chunk: reasoning begins with its first text."""
        return Chunk(f"{_OUTPUT}.added")

    def raw_delta(self, index: int, text: str) -> bytes:
        """Return a chunk with a piece of `reasoning_content`."""
        self._reasoning += text
        return self._delta("response.reasoning_text.delta", {"reasoning_content": text})

    def end_reasoning(self, summary: list[str], raw: list[str]) -> bytes:
        """Return an empty chunk: reasoning ends where the content begins."""
        return Chunk(f"{_OUTPUT}.done")

    def tool_call(self, chosen: ChosenTool) -> tuple[str, list[bytes]]:
        """Return the id of a function call, and its chunks: the name, then the arguments."""
        index = len(self._tool_calls)
        call_id = f"call_{self._call}_{index + 1}"
        arguments, pieces = argument_pieces(chosen.arguments)
        named: Json = {"id": call_id, "type": "function"}
        function = {"name": chosen.tool.name, "arguments": ""}
        self._tool_calls.append({**named, "function": {**function, "arguments": arguments}})
        chunks = [self._tool_delta(f"{_OUTPUT}.added", index, {**named, "function": function})]
        chunks += [
            self._tool_delta(_ARGUMENTS, index, {"function": {"arguments": piece}})
            for piece in pieces
        ]
        return call_id, [*chunks, Chunk(f"{_OUTPUT}.done")]

    def fail(self, code: str, message: str) -> bytes:
        """Return an error object in place of a chunk."""
        return _sse({"error": {"message": message, "type": code, "param": None, "code": code}})

    def complete(self, usage: UsageBody) -> bytes:
        """Return the chunk with the reason of the end, the usage if the call asked, and [DONE]."""
        counts: Json = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }
        reason = "tool_calls" if self._tool_calls else "stop"
        if not self._is_streamed:
            message: Json = {"role": "assistant", "content": self._content, "refusal": None}
            if self._reasoning:
                message["reasoning_content"] = self._reasoning
            if self._tool_calls:
                message["tool_calls"] = self._tool_calls
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
            whole = {**self._head("chat.completion"), "choices": [choice], "usage": counts}
            return Chunk("response.completed", compact(whole).encode())
        events = _sse(self._chunk({}, reason))
        if self._includes_usage:
            events += _sse({**self._head(), "choices": [], "usage": counts})
        return Chunk("response.completed", events + b"data: [DONE]\n\n")

    def _head(self, kind: str = "chat.completion.chunk") -> Json:
        return {"id": f"chatcmpl-{self._call}", "object": kind, "created": 0, "model": self._model}

    def _chunk(self, delta: Json, reason: str | None = None) -> Json:
        choice: Json = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        usage: Json = {"usage": None} if self._includes_usage else {}
        return {**self._head(), "choices": [choice], **usage}

    def _delta(self, event: str, delta: Json) -> bytes:
        return Chunk(event, _sse(self._chunk(delta)) if self._is_streamed else b"")

    def _tool_delta(self, event: str, index: int, call: Json) -> bytes:
        return self._delta(event, {"tool_calls": [{"index": index, **call}]})


class ChatEncoder(ResponsesEncoder):
    """Encoder for Chat Completions; calls are read in the form of the Responses API."""

    name = NAME
    has_free_text_tools = False

    def read(self, body: Mapping[str, Any]) -> Json:
        """Return a call in the form of the Responses API."""
        call: Json = {name: body[name] for name in _KEPT if name in body}
        if not body:
            return call
        call["input"] = [entry for message in arr(body.get("messages")) for entry in _read(message)]
        call["tools"] = [_read_tool(tool) for tool in map(obj, arr(body.get("tools")))]
        if "reasoning_effort" in body:
            call["reasoning"] = {"effort": body["reasoning_effort"]}
        form = obj(body.get("response_format"))
        if form.get("type") == "json_schema":
            call["text"] = {"format": {"type": "json_schema", **obj(form.get("json_schema"))}}
        return call

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return whether the call asks for a stream; else the answer is one JSON object."""
        return body.get("stream") is True

    def stream(self, call: int, body: Mapping[str, Any]) -> Stream:
        """Return the stream of the answer to call number `call`."""
        return ChatStream(call, body)

    def says_usage(self, body: Mapping[str, Any]) -> bool:
        """Return whether the answer has the usage: a streamed one only if the call asks for it."""
        options = obj(body.get("stream_options"))
        return not self.is_streamed(body) or options.get("include_usage") is True

    def reroute_headers(self, model: str) -> dict[str, str]:
        """Return no header: the answer itself names its model."""
        return {}

    def unsayable(self, step: ModelStep, body: Mapping[str, Any]) -> Iterator[Unsayable]:
        """Yield the parts that an answer with one reasoning, one text and tool calls cannot say."""
        yield from unsayable_parts(step, NAME)
        parts = step.reply or []
        kinds = [
            0 if isinstance(part, Reasoning) else 1 if is_text(part) else 2
            for part in parts
            if isinstance(part, Reasoning | ToolPart) or is_text(part)
        ]
        if kinds.count(0) > 1 or kinds.count(1) > 1:
            name = "reasoning" if kinds.count(0) > 1 else "message"
            yield Unsayable(name, f"an answer of {NAME} has one text, not several {name} parts")
        elif kinds != sorted(kinds):
            reason = f"an answer of {NAME} has its reasoning, then its text, then its tool calls"
            yield Unsayable("order", reason)
        has_usage = any("usage" in type(part).model_fields for part in parts)
        if has_usage and not self.says_usage(body):
            reason = f"the call did not ask {NAME} for usage (stream_options.include_usage)"
            yield Unsayable("usage", reason)


def _sse(event: Json) -> bytes:
    return f"data: {compact(event)}\n\n".encode()


def _read(entry: Any) -> Iterator[Json]:
    """Yield a message as entries of an input."""
    message = obj(entry)
    role, content = text(message.get("role")), message.get("content")
    if role == "tool":
        output = content if isinstance(content, str) else list(map(_read_part, arr(content)))
        call_id = text(message.get("tool_call_id"))
        yield {"type": "function_call_output", "call_id": call_id, "output": output}
        return
    reasoning = text(message.get("reasoning_content"))
    if reasoning:
        inner = [{"type": "reasoning_text", "text": reasoning}]
        yield {"type": "reasoning", "summary": [], "content": inner}
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else arr(content)
    if parts and (content or role != "assistant"):
        kind = "output_text" if role == "assistant" else "input_text"
        read = [_read_part(part, kind) for part in parts]
        yield {"type": "message", "role": role, "content": read}
    for tool_call in map(obj, arr(message.get("tool_calls"))):
        yield _read_tool_call(tool_call)


def _read_tool_call(tool_call: Mapping[str, Any]) -> Json:
    function = obj(tool_call.get("function"))
    name, arguments = function.get("name"), function.get("arguments")
    call_id = tool_call.get("id")
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def _read_part(part: Any, kind: str = "input_text") -> Json:
    members = obj(part)
    if members.get("type") == "image_url":
        url = obj(members.get("image_url")).get("url")
        return {"type": "input_image", "image_url": url}
    return {**members, "type": kind} if members.get("type") == "text" else dict(members)


def _read_tool(tool: Mapping[str, Any]) -> Json:
    kind = text(tool.get("type"))
    return {"type": kind, **obj(tool.get(kind))}
