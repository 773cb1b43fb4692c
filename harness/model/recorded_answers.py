"""Reader of a model's answer as it passes: events of the Responses API, or an error.

Unreadable data is ignored: reading must never keep an answer from its caller.
"""

import json
from typing import Any, Final

from harness.model.performance import MAX_TEXT_CHARACTERS
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import parse
from harness.trace.marks import CallEnd, ModelEnd, ModelMessage
from harness.trace.model_marks import ModelOutput

_CALL_TYPES: Final = ("function_call", "custom_tool_call", "local_shell_call", "mcp_tool_call")
_USAGE_PATHS: Final = (
    ("input_tokens",),
    ("input_tokens_details", "cached_tokens"),
    ("output_tokens",),
    ("output_tokens_details", "reasoning_tokens"),
)
# Longer events and error bodies are not read.
_MAX_HELD_BYTES: Final = 8 * 1024 * 1024
_FIRST_ERROR: Final = 400


class AnswerReader:
    """One answer. Its chunks are fed as they arrive, and `result` returns the outcome."""

    def __init__(self, call: int) -> None:
        self._call = call
        self._status = 0
        self._outcome = CallEnd.DROPPED
        self._buffer = bytearray()
        self._items: list[dict[str, Any]] = []
        self._usage: tuple[int, ...] = ()
        self._tokens = 0
        self._code = self._message = ""
        self._model = ""

    def start(self, status: int) -> None:
        """Record the HTTP status of the answer."""
        self._status = status

    def note_refusal(self, status: int, reason: str) -> None:
        """Record that there is no answer, and the status and reason that the caller gets."""
        self._status, self._outcome, self._message = status, CallEnd.STATUS, reason

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes of the body."""
        self._buffer += chunk
        if self._status >= _FIRST_ERROR:
            return
        *events, rest = bytes(self._buffer).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in events:
            self._on_event(event)
        self._buffer = bytearray(rest[-_MAX_HELD_BYTES:])

    def note_cut(self) -> None:
        """Record that the connection ended before the answer did."""
        if self._outcome is CallEnd.DROPPED:
            self._outcome = CallEnd.DISCONNECTED

    def end(self) -> None:
        """Record that the body is complete, and read an error or the last event."""
        if self._status >= _FIRST_ERROR:
            self._outcome = CallEnd.STATUS
            error = obj(obj(parse(bytes(self._buffer[:_MAX_HELD_BYTES]))).get("error"))
            self._code = text(error.get("code")) or text(error.get("type"))
            self._message = text(error.get("message"))
        else:
            self._on_event(bytes(self._buffer))
            self.note_cut()

    def result(self) -> tuple[ModelOutput | None, ModelEnd]:
        """Return the model's output, word for word (None for an HTTP error), and its summary."""
        messages = [item for item in self._items if item.get("type") == "message"]
        end = ModelEnd(
            call=self._call,
            outcome=self._outcome,
            status=self._status if self._outcome is CallEnd.STATUS else 0,
            code=self._code,
            said=self._message[:MAX_TEXT_CHARACTERS],
            usage=self._tokens,
            texts=tuple(
                ModelMessage(_text_of(item)[:MAX_TEXT_CHARACTERS], text(item.get("phase")))
                for item in messages
            ),
            tools=sum(item.get("type") in _CALL_TYPES for item in self._items),
        )
        if self._outcome is CallEnd.STATUS:
            return None, end
        items = tuple(json.dumps(item, ensure_ascii=False) for item in self._items)
        return ModelOutput(call=self._call, items=items, usage=self._usage), end

    def _on_event(self, event: bytes) -> None:
        lines = event.replace(b"\r\n", b"\n").split(b"\n")
        data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        data_read = obj(parse(data)) if data else {}
        match data_read.get("type"):
            case "response.output_item.done":
                self._items.append(dict(obj(data_read.get("item"))))
            case "response.completed" | "response.incomplete":
                self._outcome = CallEnd.COMPLETED
                self._count_tokens(obj(dig(data_read, "response", "usage")))
            case "response.failed":
                self._note_failure(obj(dig(data_read, "response", "error")))
            case "error":
                self._note_failure(obj(data_read.get("error")) or data_read)
            case _:
                pass

    def _note_failure(self, error: Any) -> None:
        self._outcome = CallEnd.FAILED
        self._code, self._message = text(error.get("code")), text(error.get("message"))

    def _count_tokens(self, usage: Any) -> None:
        if not usage:
            return
        counts = [dig(usage, *path) for path in _USAGE_PATHS]
        self._usage = tuple(count if type(count) is int else 0 for count in counts)
        total = usage.get("total_tokens", MISSING)
        self._tokens = total if type(total) is int else self._usage[0] + self._usage[2]


def _text_of(item: Any) -> str:
    return "".join(text(obj(part).get("text")) for part in arr(obj(item).get("content")))
