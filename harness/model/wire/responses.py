"""The OpenAI Responses API over server-sent events: the bytes of each event.

Sources: the API's public reference, and the behaviour of a released server.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from harness.model.encoder import RESPONSES_API, CallContents, Stream, Unsayable
from harness.model.parts import UsageBody
from harness.model.script import ModelStep
from harness.model.tool_parts import ProviderPart, WebSearch, WebSearchBody
from harness.model.tools import ChosenTool, OfferedTool
from harness.model.wire import asking
from harness.protocol.values import obj, text

Json = dict[str, Any]


def sse(event: Json) -> bytes:
    """Return one server-sent event; its name is the event's `type`."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


class ResponsesStream:
    """The events of one response, numbered as the API numbers them."""

    def __init__(self, call: int) -> None:
        self._response: Json = {"id": f"resp_{call}", "object": "response", "output": []}
        self._call = call
        self._items = 0
        self._sequence = 0

    def start(self, usage: UsageBody) -> bytes:
        """Return response.created."""
        return self._event("response.created", response={**self._response, "status": "in_progress"})

    def start_message(self) -> bytes:
        """Return response.output_item.added with an empty message."""
        self._items += 1
        return self._event(
            "response.output_item.added",
            output_index=self._items - 1,
            item={**self._message(), "status": "in_progress", "content": []},
        )

    def message_delta(self, text: str) -> bytes:
        """Return response.output_text.delta."""
        return self._event(
            "response.output_text.delta",
            item_id=self._item_id("msg"),
            output_index=self._items - 1,
            content_index=0,
            delta=text,
        )

    def end_message(self, text: str, phase: str | None) -> bytes:
        """Return response.output_item.done with the whole message."""
        content: list[Json] = [{"type": "output_text", "text": text, "annotations": []}]
        item: Json = {**self._message(), "status": "completed", "content": content}
        if phase is not None:
            item["phase"] = phase
        return self._event("response.output_item.done", output_index=self._items - 1, item=item)

    def start_reasoning(self) -> bytes:
        """Return response.output_item.added with empty reasoning."""
        self._items += 1
        return self._event(
            "response.output_item.added",
            output_index=self._items - 1,
            item={"type": "reasoning", "id": self._item_id("rs"), "summary": []},
        )

    def summary_part(self, index: int) -> bytes:
        """Return response.reasoning_summary_part.added."""
        return self._event(
            "response.reasoning_summary_part.added",
            item_id=self._item_id("rs"),
            output_index=self._items - 1,
            summary_index=index,
            part={"type": "summary_text", "text": ""},
        )

    def summary_delta(self, index: int, text: str) -> bytes:
        """Return response.reasoning_summary_text.delta."""
        return self._event(
            "response.reasoning_summary_text.delta",
            item_id=self._item_id("rs"),
            output_index=self._items - 1,
            summary_index=index,
            delta=text,
        )

    def raw_delta(self, index: int, text: str) -> bytes:
        """Return response.reasoning_text.delta."""
        return self._event(
            "response.reasoning_text.delta",
            item_id=self._item_id("rs"),
            output_index=self._items - 1,
            content_index=index,
            delta=text,
        )

    def end_reasoning(self, summary: list[str], raw: list[str]) -> bytes:
        """Return response.output_item.done with the whole reasoning."""
        item: Json = {
            "type": "reasoning",
            "id": self._item_id("rs"),
            "summary": [{"type": "summary_text", "text": part} for part in summary],
            "encrypted_content": None,
        }
        if raw:
            item["content"] = [{"type": "reasoning_text", "text": block} for block in raw]
        return self._event("response.output_item.done", output_index=self._items - 1, item=item)

    def tool_call(self, chosen: ChosenTool) -> tuple[str, list[bytes]]:
        """Return the id of a tool call, and its added, arguments and done events."""
        self._items += 1
        call_id = f"call_{self._call}_{self._items}"
        if chosen.tool.takes_free_text:
            arguments = text(obj(chosen.arguments).get("input"))
            kind, key, delta = "custom_tool_call", "input", "custom_tool_call_input"
        else:
            arguments = json.dumps(chosen.arguments, ensure_ascii=False)
            kind, key, delta = "function_call", "arguments", "function_call_arguments"
        item: Json = {"type": kind, "id": self._item_id("fc"), "call_id": call_id}
        item["name"] = chosen.tool.name
        if chosen.tool.namespace:
            item["namespace"] = chosen.tool.namespace
        place: Json = {"output_index": self._items - 1}
        started_item = {**item, key: "", "status": "in_progress"}
        completed_item = {**item, key: arguments, "status": "completed"}
        return call_id, [
            self._event("response.output_item.added", **place, item=started_item),
            self._event(f"response.{delta}.delta", **place, item_id=item["id"], delta=arguments),
            self._event("response.output_item.done", **place, item=completed_item),
        ]

    def provider_item(self, part: ProviderPart) -> list[bytes]:
        """Return response.output_item.added and response.output_item.done with the item."""
        match part:
            case WebSearch(web_search=body):
                return self._web_search(body)

    def _web_search(self, body: WebSearchBody) -> list[bytes]:
        self._items += 1
        action: Json = {"type": "search", "query": body.query}
        if body.pattern is not None:
            action = {"type": "find_in_page", "url": body.url, "pattern": body.pattern}
        elif body.url is not None:
            action = {"type": "open_page", "url": body.url}
        item: Json = {"type": "web_search_call", "id": self._item_id("ws")}
        place: Json = {"output_index": self._items - 1}
        completed_item = {**item, "status": "completed", "action": action}
        return [
            self._event(
                "response.output_item.added", **place, item={**item, "status": "in_progress"}
            ),
            self._event("response.output_item.done", **place, item=completed_item),
        ]

    def fail(self, code: str, message: str) -> bytes:
        """Return response.failed."""
        error = {"code": code, "message": message}
        return self._event(
            "response.failed", response={**self._response, "status": "failed", "error": error}
        )

    def complete(self, usage: UsageBody) -> bytes:
        """Return response.completed with usage."""
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


_STATUS_OF_CODE = {
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "rate_limit_exceeded": 429,
    "server_is_overloaded": 503,
    "slow_down": 503,
}


class ResponsesEncoder:
    """Encoder for the Responses API."""

    name = RESPONSES_API
    has_free_text_tools = True

    def read(self, body: Mapping[str, Any]) -> Json:
        """Return the call as it is."""
        return dict(body)

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return True: each answer is a stream, whether or not the call asks for one."""
        return True

    def says_usage(self, body: Mapping[str, Any]) -> bool:
        """Return True: each answer has token counts."""
        return True

    def unsayable(self, step: ModelStep, body: Mapping[str, Any]) -> Iterable[Unsayable]:
        """Return nothing: scripts have the parts of this API."""
        return ()

    def status_of(self, code: str) -> int:
        """Return the HTTP status of a failure that is not in a stream."""
        return _STATUS_OF_CODE.get(code, 500)

    def stream(self, call: int, body: Mapping[str, Any]) -> Stream:
        """Return the stream of the answer to call number `call`."""
        return ResponsesStream(call)

    def error_body(self, status: int, code: str | None, message: str) -> bytes:
        """Return the API's error object as JSON."""
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return json.dumps(
            {"error": {"message": message, "type": code or kind, "code": code}}
        ).encode()

    def user_texts(self, body: Mapping[str, Any]) -> list[str]:
        """Return the texts of all user messages in the input, in order."""
        return asking.user_texts(body)

    def call_contents(self, body: Mapping[str, Any]) -> CallContents:
        """Return the contents of a call that rules use."""
        return asking.call_contents(body)

    def schema(self, body: Mapping[str, Any]) -> Any:
        """Return the JSON Schema that the answer must have, None if there is none."""
        return asking.schema(body)

    def offered_tools(self, body: Mapping[str, Any]) -> list[OfferedTool]:
        """Return the tools of the call, including those in a namespace."""
        return asking.offered_tools(body)

    def outputs(self, body: Mapping[str, Any]) -> dict[str, str]:
        """Return the text of each tool output in the input, keyed by the id of its call."""
        return asking.outputs(body)

    def event_of(self, chunk: bytes) -> str:
        """Return the name after `event:`, "" if the chunk does not begin with one."""
        place = getattr(chunk, "event", None)
        if place is not None:
            return str(place)
        first = chunk.split(b"\n", 1)[0]
        return first[7:].decode() if first.startswith(b"event: ") else ""

    def reroute_headers(self, model: str) -> dict[str, str]:
        """Return the header in which the API names the model that answers."""
        return {"openai-model": model}

    def orphans(self, body: Mapping[str, Any]) -> list[str]:
        """Return a problem for each tool output without its call, and each call without output."""
        return asking.orphans(body)
