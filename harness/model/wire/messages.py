"""Anthropic Messages: its requests in the form of the Responses API, and its answers.

Sources: the API's public reference, and the types of the Python client `anthropic`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.model.encoder import Stream, Unsayable
from harness.model.parts import UsageBody
from harness.model.script import ModelStep
from harness.model.tools import ChosenTool
from harness.model.wire.responses import ResponsesEncoder, sse
from harness.model.wire.shared import (
    Chunk,
    PlainStream,
    argument_pieces,
    compact,
    unsayable_parts,
)
from harness.protocol.values import arr, obj, text

Json = dict[str, Any]
NAME = "Anthropic Messages"
_KEPT = ("model", "stream")
_DELTA, _STOP = "content_block_delta", "content_block_stop"

ERROR_TYPES: Mapping[str, str] = {
    "authentication_error": "authentication_error",
    "context_length_exceeded": "invalid_request_error",
    "insufficient_quota": "billing_error",
    "invalid_api_key": "authentication_error",
    "invalid_image": "invalid_request_error",
    "invalid_prompt": "invalid_request_error",
    "invalid_request": "invalid_request_error",
    "invalid_request_error": "invalid_request_error",
    "model_not_found": "not_found_error",
    "overloaded_error": "overloaded_error",
    "rate_limit_exceeded": "rate_limit_error",
    "server_error": "api_error",
    "server_is_overloaded": "overloaded_error",
    "slow_down": "overloaded_error",
}
"""Error codes of scripts -> the error types of this API; other codes cannot be said."""
_TYPES_OF_STATUS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STATUS_OF_TYPE = {kind: status for status, kind in _TYPES_OF_STATUS.items()}
_TOO_LONG = "prompt is too long"


class MessagesStream(PlainStream):
    """The events of one answer; without `stream` nothing before one JSON object at the end."""

    def __init__(self, call: int, body: Mapping[str, Any]) -> None:
        self._call = call
        self._is_streamed = body.get("stream") is True
        self._message: Json = {
            "id": f"msg_{call}",
            "type": "message",
            "role": "assistant",
            "model": text(body.get("model")),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        self._content: list[Json] = []
        self._calls_tools = False

    def start(self, usage: UsageBody) -> bytes:
        """Return message_start; its usage has the input already."""
        counts = {**_counts(usage), "output_tokens": 0}
        message = {**self._message, "usage": counts}
        return self._event("response.created", "message_start", message=message)

    def start_message(self) -> bytes:
        """Return content_block_start with an empty text."""
        return self._start_block({"type": "text", "text": ""})

    def message_delta(self, text: str) -> bytes:
        """Return content_block_delta with a piece of the text."""
        self._content[-1]["text"] += text
        return self._block_delta("response.output_text.delta", {"type": "text_delta", "text": text})

    def end_message(self, text: str, phase: str | None) -> bytes:
        """Return content_block_stop."""
        return self._stop_block()

    def start_reasoning(self) -> bytes:
        """Return content_block_start with empty thinking."""
        return self._start_block({"type": "thinking", "thinking": "", "signature": ""})

    def raw_delta(self, index: int, text: str) -> bytes:
        """Return content_block_delta with a piece of the thinking."""
        self._content[-1]["thinking"] += text
        delta = {"type": "thinking_delta", "thinking": text}
        return self._block_delta("response.reasoning_text.delta", delta)

    def end_reasoning(self, summary: list[str], raw: list[str]) -> bytes:
        """Return the thinking's signature, and content_block_stop."""
        signature = f"signature_{self._call}_{len(self._content)}"
        self._content[-1]["signature"] = signature
        delta = {"type": "signature_delta", "signature": signature}
        return Chunk("response.output_item.done", self._block_delta("", delta) + self._stop_block())

    def tool_call(self, chosen: ChosenTool) -> tuple[str, list[bytes]]:
        """Return the id of a tool_use block, and its events: the name, then the input."""
        self._calls_tools = True
        call_id = f"toolu_{self._call}_{len(self._content) + 1}"
        block: Json = {"type": "tool_use", "id": call_id, "name": chosen.tool.name, "input": {}}
        _, pieces = argument_pieces(chosen.arguments)
        chunks = [self._start_block(block)]
        self._content[-1]["input"] = chosen.arguments
        event = "response.function_call_arguments.delta"
        chunks += [
            self._block_delta(event, {"type": "input_json_delta", "partial_json": piece})
            for piece in pieces
        ]
        return call_id, [*chunks, self._stop_block()]

    def fail(self, code: str, message: str) -> bytes:
        """Return the error event."""
        return sse(_error(ERROR_TYPES.get(code, "api_error"), code, message))

    def complete(self, usage: UsageBody) -> bytes:
        """Return message_delta with the reason of the end and the usage, and message_stop."""
        delta: Json = {
            "stop_reason": "tool_use" if self._calls_tools else "end_turn",
            "stop_sequence": None,
        }
        if not self._is_streamed:
            whole = {**self._message, **delta, "content": self._content, "usage": _counts(usage)}
            return Chunk("response.completed", compact(whole).encode())
        ended = sse({"type": "message_delta", "delta": delta, "usage": _counts(usage)})
        return Chunk("response.completed", ended + sse({"type": "message_stop"}))

    def _start_block(self, block: Json) -> bytes:
        self._content.append(dict(block))
        added = "response.output_item.added"
        return self._event(added, "content_block_start", **self._place(), content_block=block)

    def _block_delta(self, event: str, delta: Json) -> bytes:
        return self._event(event, _DELTA, **self._place(), delta=delta)

    def _stop_block(self) -> bytes:
        return self._event("response.output_item.done", _STOP, **self._place())

    def _place(self) -> Json:
        return {"index": len(self._content) - 1}

    def _event(self, place: str, kind: str, **fields: Any) -> bytes:
        return Chunk(place, sse({"type": kind, **fields}) if self._is_streamed else b"")


class MessagesEncoder(ResponsesEncoder):
    """Encoder for Anthropic Messages; calls are read in the form of the Responses API."""

    name = NAME
    has_free_text_tools = False

    def read(self, body: Mapping[str, Any]) -> Json:
        """Return a call in the form of the Responses API."""
        call: Json = {name: body[name] for name in _KEPT if name in body}
        if not body:
            return call
        system = _content_of({"content": body.get("system")})
        entries: list[Json] = []
        if system:
            parts = [_read_part(part) for part in system]
            entries.append({"type": "message", "role": "system", "content": parts})
        for message in map(obj, arr(body.get("messages"))):
            entries += _read(message)
        call["input"] = entries
        call["tools"] = [
            {"type": "function", **tool, "parameters": tool.get("input_schema")}
            for tool in map(obj, arr(body.get("tools")))
        ]
        config = obj(body.get("output_config"))
        if "effort" in config:
            call["reasoning"] = {"effort": config["effort"]}
        form = obj(config.get("format")) or obj(body.get("output_format"))
        if form:
            call["text"] = {"format": form}
        return call

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return whether the call asks for a stream; else the answer is one JSON object."""
        return body.get("stream") is True

    def stream(self, call: int, body: Mapping[str, Any]) -> Stream:
        """Return the stream of the answer to call number `call`."""
        return MessagesStream(call, body)

    def error_body(self, status: int, code: str | None, message: str) -> bytes:
        """Return the API's error object as JSON."""
        kind = ERROR_TYPES.get(code or "") or _TYPES_OF_STATUS.get(status)
        kind = kind or ("api_error" if status >= 500 else "invalid_request_error")
        return json.dumps(_error(kind, code, message)).encode()

    def status_of(self, code: str) -> int:
        """Return the HTTP status of a failure that is not in a stream."""
        return _STATUS_OF_TYPE.get(ERROR_TYPES.get(code, ""), 500)

    def reroute_headers(self, model: str) -> dict[str, str]:
        """Return no header: the answer itself names its model."""
        return {}

    def unsayable(self, step: ModelStep, body: Mapping[str, Any]) -> Iterator[Unsayable]:
        """Yield the parts of a step that content blocks and this API's errors cannot say."""
        yield from unsayable_parts(step, NAME)
        code = step.fail.code if step.fail is not None else None
        if code is not None and code not in ERROR_TYPES:
            yield Unsayable("fail", f"{NAME} has no error type for {code!r}")


def _counts(usage: UsageBody) -> Json:
    """Return the token counts; the cached part is no part of `input_tokens` here."""
    cached = min(usage.cached, usage.input)
    return {
        "input_tokens": usage.input - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    }


def _error(kind: str, code: str | None, message: str) -> Json:
    if code == "context_length_exceeded":
        message = f"{_TOO_LONG}: {message}"
    return {"type": "error", "error": {"type": kind, "message": message}}


def _content_of(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else arr(content)


def _read(message: Mapping[str, Any]) -> Iterator[Json]:
    """Yield a message as entries of an input, in the order of its blocks."""
    role = text(message.get("role"))
    parts: list[Json] = []
    for block in map(obj, _content_of(message)):
        entry = _read_entry(block)
        if entry is None:
            parts.append(_read_part(block, "output_text" if role == "assistant" else "input_text"))
            continue
        if parts:
            yield {"type": "message", "role": role, "content": parts}
            parts = []
        yield entry
    if parts:
        yield {"type": "message", "role": role, "content": parts}


def _read_entry(block: Mapping[str, Any]) -> Json | None:
    """Return a block that is an entry of its own, None for a part of a message."""
    match block.get("type"):
        case "tool_use":
            arguments = json.dumps(block.get("input"), ensure_ascii=False)
            call: Json = {"type": "function_call", "call_id": block.get("id")}
            return {**call, "name": block.get("name"), "arguments": arguments}
        case "tool_result":
            content = block.get("content")
            output = content if isinstance(content, str) else [_read_part(p) for p in arr(content)]
            call_id = block.get("tool_use_id")
            return {"type": "function_call_output", "call_id": call_id, "output": output}
        case "thinking":
            inner = [{"type": "reasoning_text", "text": block.get("thinking")}]
            return {"type": "reasoning", "summary": [], "content": inner}
        case _:
            return None


def _read_part(part: Any, kind: str = "input_text") -> Json:
    members = obj(part)
    if members.get("type") == "image":
        source = obj(members.get("source"))
        data = f"data:{text(source.get('media_type'))};base64,{text(source.get('data'))}"
        return {"type": "input_image", "image_url": source.get("url") or data}
    return {**members, "type": kind} if members.get("type") == "text" else dict(members)
