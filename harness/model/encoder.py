"""The interface of a model API.

The Responses API (`wire/responses.py`) is the only one; another API would be another module with
this interface.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypedDict

from harness.model.parts import UsageBody
from harness.model.tool_parts import ProviderPart
from harness.model.tools import ChosenTool, OfferedTool

Headers = Mapping[str, str]


class CallContents(TypedDict):
    """The contents of a call: the data of the mark `model-call`, much smaller than the call.

    `model` is its name; `user_texts` the beginnings of the user's last texts; `effort` and
    `summary` are "" for none; `schema` says whether the answer must have a JSON Schema's form;
    `images` are short digests of the images in its input.
    """

    model: str
    user_texts: tuple[str, ...]
    effort: str
    summary: str
    schema: bool
    images: tuple[str, ...]


class Stream(Protocol):
    """One streamed answer. Every method returns the bytes of one chunk."""

    def start(self) -> bytes:
        """Return the begin of the stream."""
        ...

    def start_message(self) -> bytes:
        """Return the begin of an assistant message."""
        ...

    def message_delta(self, text: str) -> bytes:
        """Return a delta of the message's text."""
        ...

    def end_message(self, text: str, phase: str | None) -> bytes:
        """Return the end of the message."""
        ...

    def start_reasoning(self) -> bytes:
        """Return the begin of reasoning."""
        ...

    def summary_part(self, index: int) -> bytes:
        """Return the begin of a summary part."""
        ...

    def summary_delta(self, index: int, text: str) -> bytes:
        """Return a delta of a summary part."""
        ...

    def raw_delta(self, index: int, text: str) -> bytes:
        """Return a delta of raw reasoning."""
        ...

    def end_reasoning(self, summary: list[str], raw: list[str]) -> bytes:
        """Return the end of the reasoning."""
        ...

    def tool_call(self, chosen: ChosenTool) -> tuple[str, list[bytes]]:
        """Return the id of a tool call, and its chunks."""
        ...

    def provider_item(self, part: ProviderPart) -> list[bytes]:
        """Return an item that the model's provider made by itself, such as a search on the web."""
        ...

    def fail(self, code: str, message: str) -> bytes:
        """Return the error event that ends the stream."""
        ...

    def complete(self, usage: UsageBody) -> bytes:
        """Return the regular end of the stream."""
        ...


class Encoder(Protocol):
    """One model API."""

    content_type: str

    def stream(self, call: int, body: Mapping[str, Any]) -> Stream:
        """Return the answer to call number `call` (from 1)."""
        ...

    def error_body(self, status: int, code: str | None, message: str) -> bytes:
        """Return the body of an HTTP error."""
        ...

    def user_texts(self, body: Mapping[str, Any]) -> list[str]:
        """Return the user's texts in the call's input, oldest first."""
        ...

    def call_contents(self, body: Mapping[str, Any]) -> CallContents:
        """Return the contents of a call, as far as rules use them."""
        ...

    def schema(self, body: Mapping[str, Any]) -> Any:
        """Return the JSON Schema of the answer, None for none."""
        ...

    def offered_tools(self, body: Mapping[str, Any]) -> list[OfferedTool]:
        """Return the tools that the call offers."""
        ...

    def outputs(self, body: Mapping[str, Any]) -> dict[str, str]:
        """Return the outputs of tool calls in the call's input, by the id of their call."""
        ...

    def event_of(self, chunk: bytes) -> str:
        """Return the name of the event that a chunk holds, "" for none."""
        ...

    def reroute_headers(self, model: str) -> dict[str, str]:
        """Return the headers which say that another model answers."""
        ...

    def orphans(self, body: Mapping[str, Any]) -> list[str]:
        """Return the tool outputs of the input without their call, and the calls without output."""
        ...
