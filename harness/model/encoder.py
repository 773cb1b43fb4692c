"""The interface of a model API.

Each call is read into the form of the Responses API; the other methods get that form as `body`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from harness.model.parts import UsageBody
from harness.model.script import ModelStep
from harness.model.tool_parts import ProviderPart
from harness.model.tools import ChosenTool, OfferedTool

RESPONSES_API = "the Responses API"
"""The name of the API whose form all calls are read into."""
Headers = Mapping[str, str]


class CallContents(TypedDict):
    """Contents of a call, as the mark of a model call has them; much smaller than the call.

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


@dataclass(frozen=True, slots=True)
class Unsayable:
    """A part of a step that a model API cannot say: its key, the reason, the capability it is for.

    `capability` is "" if no single capability of a server depends on it.
    """

    part: str
    reason: str
    capability: str = ""


class Stream(Protocol):
    """One streamed answer. Most methods return the bytes of one chunk."""

    def start(self, usage: UsageBody) -> bytes:
        """Return the beginning of the stream; `usage` is that of the whole answer."""
        ...

    def start_message(self) -> bytes:
        """Return the beginning of an assistant message."""
        ...

    def message_delta(self, text: str) -> bytes:
        """Return a delta of the message's text."""
        ...

    def end_message(self, text: str, phase: str | None) -> bytes:
        """Return the end of the message."""
        ...

    def start_reasoning(self) -> bytes:
        """Return the beginning of reasoning."""
        ...

    def summary_part(self, index: int) -> bytes:
        """Return the beginning of a summary part."""
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
        """Return the chunks of an item that the model's provider made, such as a web search."""
        ...

    def fail(self, code: str, message: str) -> bytes:
        """Return the error event that ends the stream."""
        ...

    def complete(self, usage: UsageBody) -> bytes:
        """Return the regular end of the stream, with the token counts."""
        ...


class Encoder(Protocol):
    """One model API: its `name`, and whether its tools can take text that is not JSON."""

    name: str
    has_free_text_tools: bool

    def read(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a call in the form of the Responses API."""
        ...

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return whether the answer to a call is a stream of events, not one JSON object."""
        ...

    def says_usage(self, body: Mapping[str, Any]) -> bool:
        """Return whether the answer to a call has token counts."""
        ...

    def unsayable(self, step: ModelStep, body: Mapping[str, Any]) -> Iterable[Unsayable]:
        """Return the parts of a step that an answer to this call cannot say."""
        ...

    def status_of(self, code: str) -> int:
        """Return the HTTP status of a failure that is not in a stream."""
        ...

    def stream(self, call: int, body: Mapping[str, Any]) -> Stream:
        """Return the stream of the answer to call number `call` (from 1)."""
        ...

    def error_body(self, status: int, code: str | None, message: str) -> bytes:
        """Return the body of an HTTP error."""
        ...

    def user_texts(self, body: Mapping[str, Any]) -> list[str]:
        """Return the user's texts in the call's input, oldest first."""
        ...

    def call_contents(self, body: Mapping[str, Any]) -> CallContents:
        """Return the contents of a call that rules use."""
        ...

    def schema(self, body: Mapping[str, Any]) -> Any:
        """Return the JSON Schema that the answer must have, None if there is none."""
        ...

    def offered_tools(self, body: Mapping[str, Any]) -> list[OfferedTool]:
        """Return the tools that the call offers."""
        ...

    def outputs(self, body: Mapping[str, Any]) -> dict[str, str]:
        """Return the outputs of tool calls in the call's input, keyed by the tool call's id."""
        ...

    def event_of(self, chunk: bytes) -> str:
        """Return the name of a chunk's event, "" if it has none."""
        ...

    def reroute_headers(self, model: str) -> dict[str, str]:
        """Return the HTTP headers for an answer by another model."""
        ...

    def orphans(self, body: Mapping[str, Any]) -> list[str]:
        """Return a problem for each tool output without its call, and each call without output."""
        ...
