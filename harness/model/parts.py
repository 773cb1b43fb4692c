"""Parts of a scripted reply, described by intent.

Tables choose the names of tools (`tools`), the encoder the shapes of events.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from harness.model.strict import Strict, Times, single_key
from harness.model.tool_parts import AskPart


class Hold(Strict):
    """Wait at this place until the client's side opens the gate."""

    hold: str = Field(min_length=1)


Event = Literal[
    "response.created",
    "response.output_item.added",
    "response.output_text.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.output_item.done",
    "response.completed",
]


class Cut(Strict):
    """`disconnect`: close the connection here, in the middle of the stream.

    `before` and `after` name an event of the stream instead of this place; its first occurrence
    counts. `times` says for how many calls the step is repeated before the next step is played.
    """

    times: Times = 1
    before: Event | None = None
    after: Event | None = None

    @model_validator(mode="after")
    def _check_place(self) -> "Cut":
        if self.before is not None and self.after is not None:
            raise ValueError("expected at most one of before and after")
        return self


def _disconnect_tag(value: Any) -> str:
    return "cut" if isinstance(value, dict | Cut) else "true"


class Disconnect(Strict):
    """Close the connection at this place of the reply, or at an event."""

    disconnect: Annotated[
        Annotated[Literal[True], Tag("true")] | Annotated[Cut, Tag("cut")],
        Discriminator(_disconnect_tag),
    ]

    @property
    def as_cut(self) -> Cut:
        """Return the long form of the entry."""
        return self.disconnect if isinstance(self.disconnect, Cut) else Cut()

    @property
    def is_here(self) -> bool:
        """Return whether the cut is at this place and not at an event."""
        return self.as_cut.before is None and self.as_cut.after is None


class DelayBody(Strict):
    """The seconds during which nothing is sent."""

    seconds: float = Field(gt=0, le=10)


class Delay(Strict):
    """`delay: {seconds: 0.5}`: an idle or a slow stream; only for scenarios about time limits."""

    delay: DelayBody


Delta = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[Hold, Tag("hold")]
    | Annotated[Disconnect, Tag("disconnect")]
    | Annotated[Delay, Tag("delay")],
    Discriminator(single_key),
]


class MessageBody(Strict):
    """An assistant message, streamed as deltas. `phase` is sent unchanged."""

    deltas: list[Delta] = Field(default_factory=list[Delta])
    phase: str | None = None


def _message_from_text(value: Any) -> Any:
    return {"deltas": [value]} if isinstance(value, str) else value


class Message(Strict):
    """`message: "text"`, or `message: {deltas: […]}`."""

    message: Annotated[MessageBody, BeforeValidator(_message_from_text)]


def _block_tag(value: Any) -> str:
    return "list" if isinstance(value, list) else "text"


Block = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[Delta], Tag("list")], Discriminator(_block_tag)
]


class ReasoningBody(Strict):
    """Reasoning: summary parts and raw blocks; each is a text or a list of deltas."""

    summary: list[Block] = Field(default_factory=list[Block])
    raw: list[Block] = Field(default_factory=list[Block])


class Reasoning(Strict):
    """`reasoning: {summary: […], raw: […]}`."""

    reasoning: ReasoningBody


class UsageBody(Strict):
    """Token counts of one model call."""

    input: int = Field(default=10, ge=0)
    cached: int = Field(default=0, ge=0)
    output: int = Field(default=5, ge=0)
    reasoning: int = Field(default=0, ge=0)


class Usage(Strict):
    """`usage: {input: 10, output: 5}`; without it a call reports the defaults."""

    usage: UsageBody


class PlanItemBody(MessageBody):
    """A proposed plan, streamed as deltas; `final` is the whole plan if it differs."""

    final: str | None = None


class PlanItem(Strict):
    """`plan_item: "text"`, or `plan_item: {deltas: [...]}`: a proposed plan within the answer."""

    plan_item: Annotated[PlanItemBody, BeforeValidator(_message_from_text)]


class RerouteBody(Strict):
    """The model that answers."""

    model: str = Field(min_length=1)


class Reroute(Strict):
    """`reroute: {model: NAME}`: another model than the requested one answers."""

    reroute: RerouteBody


class Headers(Strict):
    """`headers: {NAME: VALUE}`: further HTTP headers of the answer, such as a provider's limits."""

    headers: dict[str, str]

    @model_validator(mode="after")
    def _check_headers(self) -> "Headers":
        for name, value in self.headers.items():
            if not re.fullmatch(r"[A-Za-z0-9-]+", name):
                raise ValueError(f"headers: {name!r} is not a name of letters, digits and -")
            if not re.fullmatch(r"[ -~]*", value):
                raise ValueError(f"headers: the value of {name} has other than printable ASCII")
        return self


class MalformedBody(Strict):
    """Bytes within the stream; `times` is the number of calls for which the step is repeated."""

    text: str | None = Field(default=None, alias="bytes")
    hex: str | None = None
    times: Times = 1

    @model_validator(mode="after")
    def _check_one_form(self) -> "MalformedBody":
        if (self.text is None) == (self.hex is None):
            raise ValueError("expected exactly one of bytes and hex")
        try:
            bytes.fromhex(self.hex or "")
        except ValueError:
            raise ValueError(f"hex: {self.hex!r} is no row of pairs of hex digits") from None
        return self

    @property
    def raw(self) -> bytes:
        """Return the bytes that are sent."""
        return bytes.fromhex(self.hex) if self.hex is not None else (self.text or "").encode()


class Malformed(Strict):
    """`malformed: {bytes: "data: {\\n\\n"}`: bytes that no model would send."""

    malformed: MalformedBody


Part = Annotated[
    Annotated[Message, Tag("message")]
    | Annotated[Reasoning, Tag("reasoning")]
    | Annotated[PlanItem, Tag("plan_item")]
    | AskPart
    | Annotated[Reroute, Tag("reroute")]
    | Annotated[Headers, Tag("headers")]
    | Annotated[Usage, Tag("usage")]
    | Annotated[Malformed, Tag("malformed")]
    | Annotated[Delay, Tag("delay")]
    | Annotated[Hold, Tag("hold")]
    | Annotated[Disconnect, Tag("disconnect")],
    Discriminator(single_key),
]
