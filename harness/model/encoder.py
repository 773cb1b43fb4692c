"""The interface of a model API.

The Responses API (`wire/responses.py`) is the only one; another API would be another module with
this interface.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypedDict

from harness.model.asks import ProviderPart
from harness.model.parts import UsageBody
from harness.model.tools import Chosen, Offered

Headers = Mapping[str, str]


class Asked(TypedDict):
    """The contents of a call: the data of the mark `model-call`, much smaller than the call.

    `model` is its name; `user_texts` the beginnings of the user's last texts; `effort` and
    `summary` are "" for none; `schema` says whether the answer must have a JSON Schema's form.
    """

    model: str
    user_texts: tuple[str, ...]
    effort: str
    summary: str
    schema: bool


class Stream(Protocol):
    """One streamed answer. Every method returns the bytes of one chunk."""

    def opened(self) -> bytes:
        """The stream begins."""
        ...

    def message_started(self) -> bytes:
        """An assistant message begins."""
        ...

    def message_delta(self, text: str) -> bytes:
        """Some of its text."""
        ...

    def message_done(self, text: str, phase: str | None) -> bytes:
        """The message is whole."""
        ...

    def reasoning_started(self) -> bytes:
        """Reasoning begins."""
        ...

    def summary_part(self, index: int) -> bytes:
        """A summary part begins."""
        ...

    def summary_delta(self, index: int, text: str) -> bytes:
        """Some text of a summary part."""
        ...

    def raw_delta(self, index: int, text: str) -> bytes:
        """Some raw reasoning."""
        ...

    def reasoning_done(self, summary: list[str], raw: list[str]) -> bytes:
        """The reasoning is whole."""
        ...

    def tool_call(self, chosen: Chosen) -> tuple[str, list[bytes]]:
        """A tool is called: the call's id, and its chunks."""
        ...

    def provider_item(self, part: ProviderPart) -> list[bytes]:
        """An item that the model's provider made by itself, such as a search on the web."""
        ...

    def failed(self, code: str, message: str) -> bytes:
        """The stream ends by an error event."""
        ...

    def completed(self, usage: UsageBody) -> bytes:
        """The stream ends well."""
        ...


class Encoder(Protocol):
    """One model API."""

    content_type: str

    def stream(self, call: int, body: Mapping[str, Any]) -> Stream:
        """The answer to call number `call` (from 1)."""
        ...

    def error_body(self, status: int, code: str | None, message: str) -> bytes:
        """The body of an HTTP error."""
        ...

    def user_texts(self, body: Mapping[str, Any]) -> list[str]:
        """The user's texts in the call's input, oldest first."""
        ...

    def asked(self, body: Mapping[str, Any]) -> Asked:
        """Return the contents of a call, as far as rules use them."""
        ...

    def schema(self, body: Mapping[str, Any]) -> Any:
        """The JSON Schema of the answer, None for none."""
        ...

    def offered(self, body: Mapping[str, Any]) -> list[Offered]:
        """The tools that the call offers."""
        ...

    def outputs(self, body: Mapping[str, Any]) -> dict[str, str]:
        """The outputs of tool calls in the call's input, by the id of their call."""
        ...

    def event_of(self, chunk: bytes) -> str:
        """The name of the event that a chunk holds, "" for none."""
        ...

    def rerouted(self, model: str) -> dict[str, str]:
        """The headers which say that another model answers."""
        ...

    def orphans(self, body: Mapping[str, Any]) -> list[str]:
        """Problems of the input: tool outputs without their call, calls without their output."""
        ...
