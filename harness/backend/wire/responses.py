"""The OpenAI Responses API over server-sent events: bytes for every intent.

Here: names of events and shapes of items, without I/O. Source: the API's public reference, as a
shipping server consumes it. Not here: scripts, gates, HTTP.
"""

import json
from collections.abc import Mapping
from typing import Any

from harness.backend.script import UsageBody
from harness.trace.values import arr, obj, text

Json = dict[str, Any]


def sse(event: Json) -> bytes:
    """One server-sent event; its name is the event's `type`."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


class ResponsesStream:
    """The events of one response, numbered as the API numbers them."""

    def __init__(self, call: int) -> None:
        self._response: Json = {"id": f"resp_{call}", "object": "response", "output": []}
        self._call = call
        self._items = 0
        self._sequence = 0

    def opened(self) -> bytes:
        """response.created"""
        return self._event("response.created", response={**self._response, "status": "in_progress"})

    def message_started(self) -> bytes:
        """response.output_item.added with an empty message"""
        self._items += 1
        return self._event(
            "response.output_item.added",
            output_index=self._items - 1,
            item={**self._message(), "status": "in_progress", "content": []},
        )

    def message_delta(self, text: str) -> bytes:
        """response.output_text.delta"""
        return self._event(
            "response.output_text.delta",
            item_id=self._item_id("msg"),
            output_index=self._items - 1,
            content_index=0,
            delta=text,
        )

    def message_done(self, text: str, phase: str | None) -> bytes:
        """response.output_item.done with the whole message"""
        content: list[Json] = [{"type": "output_text", "text": text, "annotations": []}]
        item: Json = {**self._message(), "status": "completed", "content": content}
        if phase is not None:
            item["phase"] = phase
        return self._event("response.output_item.done", output_index=self._items - 1, item=item)

    def reasoning_started(self) -> bytes:
        """response.output_item.added with empty reasoning"""
        self._items += 1
        return self._event(
            "response.output_item.added",
            output_index=self._items - 1,
            item={"type": "reasoning", "id": self._item_id("rs"), "summary": []},
        )

    def summary_part(self, index: int) -> bytes:
        """response.reasoning_summary_part.added"""
        return self._event(
            "response.reasoning_summary_part.added",
            item_id=self._item_id("rs"),
            output_index=self._items - 1,
            summary_index=index,
            part={"type": "summary_text", "text": ""},
        )

    def summary_delta(self, index: int, text: str) -> bytes:
        """response.reasoning_summary_text.delta"""
        return self._event(
            "response.reasoning_summary_text.delta",
            item_id=self._item_id("rs"),
            output_index=self._items - 1,
            summary_index=index,
            delta=text,
        )

    def raw_delta(self, index: int, text: str) -> bytes:
        """response.reasoning_text.delta"""
        return self._event(
            "response.reasoning_text.delta",
            item_id=self._item_id("rs"),
            output_index=self._items - 1,
            content_index=index,
            delta=text,
        )

    def reasoning_done(self, summary: list[str], raw: list[str]) -> bytes:
        """response.output_item.done with the whole reasoning"""
        item: Json = {
            "type": "reasoning",
            "id": self._item_id("rs"),
            "summary": [{"type": "summary_text", "text": part} for part in summary],
            "encrypted_content": None,
        }
        if raw:
            item["content"] = [{"type": "reasoning_text", "text": block} for block in raw]
        return self._event("response.output_item.done", output_index=self._items - 1, item=item)

    def failed(self, code: str, message: str) -> bytes:
        """response.failed"""
        error = {"code": code, "message": message}
        return self._event(
            "response.failed", response={**self._response, "status": "failed", "error": error}
        )

    def completed(self, usage: UsageBody) -> bytes:
        """response.completed with usage"""
        counts: Json = {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        }
        return self._event(
            "response.completed",
            response={**self._response, "status": "completed", "usage": counts},
        )

    def _message(self) -> Json:
        return {"type": "message", "id": self._item_id("msg"), "role": "assistant"}

    def _item_id(self, prefix: str) -> str:
        return f"{prefix}_{self._call}_{self._items}"

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._sequence += 1
        return sse({"type": kind, "sequence_number": self._sequence, **fields})


class ResponsesEncoder:
    """The encoder of the Responses API."""

    content_type = "text/event-stream"

    def stream(self, call: int, body: Mapping[str, Any]) -> ResponsesStream:
        """The answer to call number `call`."""
        return ResponsesStream(call)

    def error_body(self, status: int, code: str | None, message: str) -> bytes:
        """The API's error object."""
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return json.dumps(
            {"error": {"message": message, "type": code or kind, "code": code}}
        ).encode()

    def user_texts(self, body: Mapping[str, Any]) -> list[str]:
        """The texts of all user messages of the input."""
        return [
            text(obj(part).get("text"))
            for message in _messages(body)
            if message.get("role") == "user"
            for part in _parts(message)
        ]

    def orphans(self, body: Mapping[str, Any]) -> list[str]:
        """Tool outputs in the input whose call is not in the input before them."""
        called: set[str] = set()
        problems: list[str] = []
        for entry in map(obj, arr(body.get("input"))):
            kind, call_id = text(entry.get("type")), text(entry.get("call_id"))
            if kind.endswith("_call_output") and call_id not in called:
                problems.append(f"a {kind} for call {call_id!r}, which the input does not hold")
            elif kind.endswith("_call"):
                called.add(call_id)
        return problems


def _messages(body: Mapping[str, Any]) -> list[Json]:
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return [entry for entry in map(obj, arr(given)) if "role" in entry]


def _parts(message: Json) -> list[Any]:
    content = message.get("content")
    return [{"text": content}] if isinstance(content, str) else arr(content)
