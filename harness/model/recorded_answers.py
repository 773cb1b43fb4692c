"""Reads the answer of a model as it passes: a stream of events of the Responses API, or an error.

What cannot be read is passed over: nothing here may keep an answer from its caller.
"""

import json
from typing import Any, Final

from harness.model.play import MAX_TEXT_CHARACTERS
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import parse
from harness.trace.marks import CallEnd, ModelEnd, Said
from harness.trace.model_marks import ModelSaid

_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call", "mcp_tool_call")
_USAGE: Final = (
    ("input_tokens",),
    ("input_tokens_details", "cached_tokens"),
    ("output_tokens",),
    ("output_tokens_details", "reasoning_tokens"),
)
# An event, or the body of an error, that is longer is not read.
_MAX_HELD_BYTES: Final = 8 * 1024 * 1024
_FIRST_ERROR: Final = 400


class AnswerReader:
    """One answer. It is fed as it comes, and `finished` says what came of it."""

    def __init__(self, call: int) -> None:
        self._call = call
        self._status = 0
        self._outcome = CallEnd.DROPPED
        self._buffer = bytearray()
        self._items: list[dict[str, Any]] = []
        self._usage: tuple[int, ...] = ()
        self._tokens = 0
        self._code = self._said = ""
        self._model = ""

    def began(self, status: int) -> None:
        """The head of the answer came, with this HTTP status."""
        self._status = status

    def refused(self, status: int, why: str) -> None:
        """There is no answer: the caller gets this status."""
        self._status, self._outcome, self._said = status, CallEnd.STATUS, why

    def feed(self, chunk: bytes) -> None:
        """Some bytes came."""
        self._buffer += chunk
        if self._status >= _FIRST_ERROR:
            return
        *events, rest = bytes(self._buffer).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in events:
            self._event(event)
        self._buffer = bytearray(rest[-_MAX_HELD_BYTES:])

    def cut(self) -> None:
        """The connection ended before the answer did."""
        if self._outcome is CallEnd.DROPPED:
            self._outcome = CallEnd.DISCONNECTED

    def whole(self) -> None:
        """The answer ended."""
        if self._status >= _FIRST_ERROR:
            self._outcome = CallEnd.STATUS
            error = obj(obj(parse(bytes(self._buffer[:_MAX_HELD_BYTES]))).get("error"))
            self._code = text(error.get("code")) or text(error.get("type"))
            self._said = text(error.get("message"))
        else:
            self._event(bytes(self._buffer))
            self.cut()

    def finished(self) -> tuple[ModelSaid | None, ModelEnd]:
        """Return the model's answer, word for word if it was a stream, and in short."""
        messages = [item for item in self._items if item.get("type") == "message"]
        end = ModelEnd(
            call=self._call,
            outcome=self._outcome,
            status=self._status if self._outcome is CallEnd.STATUS else 0,
            code=self._code,
            said=self._said[:MAX_TEXT_CHARACTERS],
            usage=self._tokens,
            texts=tuple(
                Said(_text_of(item)[:MAX_TEXT_CHARACTERS], text(item.get("phase")))
                for item in messages
            ),
            tools=sum(item.get("type") in _CALLS for item in self._items),
        )
        if self._outcome is CallEnd.STATUS:
            return None, end
        items = tuple(json.dumps(item, ensure_ascii=False) for item in self._items)
        return ModelSaid(call=self._call, items=items, usage=self._usage), end

    def _event(self, event: bytes) -> None:
        lines = event.replace(b"\r\n", b"\n").split(b"\n")
        data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        said = obj(parse(data)) if data else {}
        match said.get("type"):
            case "response.output_item.done":
                self._items.append(dict(obj(said.get("item"))))
            case "response.completed" | "response.incomplete":
                self._outcome = CallEnd.COMPLETED
                self._count(obj(dig(said, "response", "usage")))
            case "response.failed":
                self._failed(obj(dig(said, "response", "error")))
            case "error":
                self._failed(obj(said.get("error")) or said)
            case _:
                pass

    def _failed(self, error: Any) -> None:
        self._outcome = CallEnd.FAILED
        self._code, self._said = text(error.get("code")), text(error.get("message"))

    def _count(self, usage: Any) -> None:
        if not usage:
            return
        found = [dig(usage, *path) for path in _USAGE]
        self._usage = tuple(one if type(one) is int else 0 for one in found)
        total = usage.get("total_tokens", MISSING)
        self._tokens = total if type(total) is int else self._usage[0] + self._usage[2]


def _text_of(item: Any) -> str:
    return "".join(text(obj(part).get("text")) for part in arr(obj(item).get("content")))
