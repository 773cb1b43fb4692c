"""Readers of a model's answer as it passes, one for each API: its events, or an error.

Unreadable data is ignored: reading must never keep an answer from its caller.
"""

import json
import time
from collections.abc import Callable
from typing import Any, Final

from harness.model.performance import MAX_TEXT_CHARACTERS
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import parse
from harness.trace.marks import CallEnd, ModelEnd, ModelMessage
from harness.trace.model_marks import ModelOutput, ModelPiece

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
    """One answer of the Responses API, fed as it arrives; `result` returns the outcome.

    `clock` gives seconds; the first piece counts from the reader's beginning.
    """

    def __init__(self, call: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._call = call
        self._clock = clock
        self._last_piece = clock()
        self._open_pieces: list[ModelPiece] = []
        self._pieces: list[tuple[ModelPiece, ...]] = []
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
            if self._outcome is CallEnd.DROPPED:
                self._on_whole(obj(parse(bytes(self._buffer))))
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
        pieces = tuple(self._pieces)
        return ModelOutput(call=self._call, items=items, usage=self._usage, pieces=pieces), end

    def _on_event(self, event: bytes) -> None:
        lines = event.replace(b"\r\n", b"\n").split(b"\n")
        data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        if data:
            self._on_data(obj(parse(data)))

    def _on_whole(self, answer: dict[str, Any]) -> None:
        """Read an answer that is one JSON object; this API has none."""

    def _on_data(self, data_read: dict[str, Any]) -> None:
        """Read the JSON object of an event, {} if it is not one."""
        match data_read.get("type"):
            case (
                "response.output_text.delta"
                | "response.reasoning_text.delta"
                | "response.reasoning_summary_text.delta"
            ):
                self._add_piece(len(text(data_read.get("delta"))))
            case "response.output_item.done":
                self._add_item(dict(obj(data_read.get("item"))))
            case "response.completed" | "response.incomplete":
                self._outcome = CallEnd.COMPLETED
                self._count_tokens(obj(dig(data_read, "response", "usage")))
            case "response.failed":
                self._note_failure(obj(dig(data_read, "response", "error")))
            case "error":
                self._note_failure(obj(data_read.get("error")) or data_read)
            case _:
                pass

    def _add_piece(self, characters: int) -> None:
        now = self._clock()
        seconds, self._last_piece = round(now - self._last_piece, 4), now
        self._open_pieces.append(ModelPiece(seconds, characters))

    def _add_item(self, item: dict[str, Any]) -> None:
        """Add a whole output item, in the form of the Responses API."""
        if not self._open_pieces:
            self._add_piece(0)
        self._items.append(item)
        self._pieces.append(tuple(self._open_pieces))
        self._open_pieces.clear()

    def _note_failure(self, error: Any) -> None:
        self._outcome = CallEnd.FAILED
        self._code = text(error.get("code")) or text(error.get("type"))
        self._message = text(error.get("message"))

    def _count_tokens(self, usage: Any) -> None:
        if not usage:
            return
        counts = [dig(usage, *path) for path in _USAGE_PATHS]
        self._usage = tuple(count if type(count) is int else 0 for count in counts)
        total = usage.get("total_tokens", MISSING)
        self._tokens = total if type(total) is int else self._usage[0] + self._usage[2]


def _text_of(item: Any) -> str:
    return "".join(text(obj(part).get("text")) for part in arr(obj(item).get("content")))


class _ItemReader(AnswerReader):
    """Base of readers of other APIs, which build the items of the Responses API piece by piece."""

    _item: dict[str, Any] | None = None

    def _grow(self, kind: str, piece: str) -> None:
        """Add a text to the message or reasoning in progress; begin one if there is none."""
        if self._item is None or self._item["type"] != kind:
            self._close()
            form = "output_text" if kind == "message" else "reasoning_text"
            self._item = {"type": kind, "content": [{"type": form, "text": ""}]}
            self._item |= {"role": "assistant"} if kind == "message" else {"summary": []}
        self._item["content"][0]["text"] += piece
        if piece:
            self._add_piece(len(piece))

    def _close(self) -> None:
        if self._item is not None:
            self._add_item(self._item)
            self._item = None

    def _complete(self, counts: tuple[Any, Any, Any, Any]) -> None:
        """End the answer; the counts are input, cached, output and reasoning."""
        self._close()
        self._outcome = CallEnd.COMPLETED
        if any(type(count) is int for count in counts):
            self._usage = tuple(count if type(count) is int else 0 for count in counts)
            self._tokens = self._usage[0] + self._usage[2]


def _function_call(call_id: Any, name: Any, arguments: str) -> dict[str, Any]:
    call = {"call_id": text(call_id), "name": text(name), "arguments": arguments}
    return {"type": "function_call", **call}


class ChatReader(_ItemReader):
    """One answer of Chat Completions."""

    def __init__(self, call: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(call, clock)
        self._tool_calls: dict[Any, dict[str, Any]] = {}

    def _on_data(self, data_read: dict[str, Any]) -> None:
        if data_read.get("error"):
            self._note_failure(obj(data_read["error"]))
            return
        for choice in map(obj, arr(data_read.get("choices"))):
            self._on_message(obj(choice.get("delta")))
            if choice.get("finish_reason"):
                self._end()
        self._on_usage(data_read)

    def _on_whole(self, answer: dict[str, Any]) -> None:
        for choice in map(obj, arr(answer.get("choices"))):
            self._on_message(obj(choice.get("message")))
            self._end()
        self._on_usage(answer)

    def _on_message(self, message: dict[str, Any]) -> None:
        if reasoning := text(message.get("reasoning_content")):
            self._grow("reasoning", reasoning)
        if content := text(message.get("content")):
            self._grow("message", content)
        for number, part in enumerate(map(obj, arr(message.get("tool_calls")))):
            function = obj(part.get("function"))
            begun = _function_call(part.get("id"), function.get("name"), "")
            call = self._tool_calls.setdefault(part.get("index", number), begun)
            call["arguments"] += text(function.get("arguments"))

    def _end(self) -> None:
        self._close()
        for call in self._tool_calls.values():
            self._add_item(call)
        self._tool_calls.clear()
        self._complete((None, None, None, None))

    def _on_usage(self, answer: dict[str, Any]) -> None:
        usage = obj(answer.get("usage"))
        if usage and self._outcome is CallEnd.COMPLETED:
            cached = dig(usage, "prompt_tokens_details", "cached_tokens")
            reasoning = dig(usage, "completion_tokens_details", "reasoning_tokens")
            counts = (usage.get("prompt_tokens"), cached, usage.get("completion_tokens"), reasoning)
            self._complete(counts)


class MessagesReader(_ItemReader):
    """One answer of Anthropic Messages."""

    def __init__(self, call: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(call, clock)
        self._counts: dict[str, Any] = {}

    def _on_data(self, data_read: dict[str, Any]) -> None:
        match data_read.get("type"):
            case "error":
                self._note_failure(obj(data_read.get("error")))
            case "message_start":
                self._counts |= obj(dig(data_read, "message", "usage"))
            case "content_block_start":
                self._close()
                self._on_block(obj(data_read.get("content_block")), is_whole=False)
            case "content_block_delta":
                delta = obj(data_read.get("delta"))
                if self._item is not None and self._item["type"] == "function_call":
                    self._item["arguments"] += text(delta.get("partial_json"))
                elif piece := text(delta.get("text")):
                    self._grow("message", piece)
                elif piece := text(delta.get("thinking")):
                    self._grow("reasoning", piece)
            case "content_block_stop":
                self._close()
            case "message_delta":
                self._counts |= obj(data_read.get("usage"))
            case "message_stop":
                self._end()
            case _:
                pass

    def _on_whole(self, answer: dict[str, Any]) -> None:
        if answer.get("type") == "message":
            for block in map(obj, arr(answer.get("content"))):
                self._on_block(block, is_whole=True)
                self._close()
            self._counts |= obj(answer.get("usage"))
            self._end()

    def _on_block(self, block: dict[str, Any], *, is_whole: bool) -> None:
        match block.get("type"):
            case "tool_use":
                arguments = json.dumps(block.get("input"), ensure_ascii=False) if is_whole else ""
                self._item = _function_call(block.get("id"), block.get("name"), arguments)
            case "text":
                self._grow("message", text(block.get("text")))
            case "thinking":
                self._grow("reasoning", text(block.get("thinking")))
            case _:
                pass

    def _end(self) -> None:
        counts = self._counts
        read = [
            counts.get(name)
            for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        ]
        whole = sum(count for count in read if type(count) is int)
        reasoning = dig(counts, "output_tokens_details", "thinking_tokens")
        is_counted = any(type(count) is int for count in read)
        self._complete(
            (whole if is_counted else None, read[2], counts.get("output_tokens"), reasoning)
        )


READERS: Final = {"Chat Completions": ChatReader, "Anthropic Messages": MessagesReader}
"""Names of APIs -> their readers; `AnswerReader` for the Responses API."""
