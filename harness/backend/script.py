"""What the scripted model says: the model's side of a scenario, at the level of intent.

Here: the pydantic models of the model steps, and nothing that plays them. A reply is a list of
parts; where a name of a tool or the shape of an event matters, the encoder chooses it.
"""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from harness.trace.values import obj

Times = Annotated[int, Field(ge=1, le=100)] | Literal["until-turn-ends"]


class Strict(BaseModel):
    """A mapping in a scenario file: unknown keys are errors, values are never converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def key_of(value: Any) -> str | None:
    """The one key of a mapping, which says which alternative it is; "text" for a text."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, BaseModel):
        return next(iter(type(value).model_fields), None)
    mapping = obj(value)
    return next(iter(mapping)) if len(mapping) == 1 else None


class Hold(Strict):
    """Stop here until the client's side opens the gate."""

    hold: str = Field(min_length=1)


class Cut(Strict):
    """`disconnect`: close the connection here, in the middle of the stream.

    `times` says for how many calls the step is repeated before the next step is played.
    """

    times: Times = 1


class Disconnect(Strict):
    """The connection is closed at this place of the reply."""

    disconnect: Literal[True] | Cut

    @property
    def times(self) -> Times:
        """For how many model calls the step is played."""
        return self.disconnect.times if isinstance(self.disconnect, Cut) else 1


Delta = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[Hold, Tag("hold")]
    | Annotated[Disconnect, Tag("disconnect")],
    Discriminator(key_of),
]


class MessageBody(Strict):
    """An assistant message, streamed as deltas. `phase` is passed on as it is."""

    deltas: list[Delta] = Field(default_factory=list[Delta])
    phase: str | None = None


def _message(value: Any) -> Any:
    return {"deltas": [value]} if isinstance(value, str) else value


class Message(Strict):
    """`message: "text"`, or `message: {deltas: […]}`."""

    message: Annotated[MessageBody, BeforeValidator(_message)]


def _block(value: Any) -> str:
    return "list" if isinstance(value, list) else "text"


Block = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[Delta], Tag("list")], Discriminator(_block)
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


Part = Annotated[
    Annotated[Message, Tag("message")]
    | Annotated[Reasoning, Tag("reasoning")]
    | Annotated[Usage, Tag("usage")]
    | Annotated[Hold, Tag("hold")]
    | Annotated[Disconnect, Tag("disconnect")],
    Discriminator(key_of),
]


class Fail(Strict):
    """The call fails: by HTTP `status`, or with no status by an error event in the stream."""

    status: Annotated[int, Field(ge=400, le=599)] | None = None
    code: str | None = None
    message: str = "scripted failure"
    retry_after: Annotated[float, Field(ge=0, le=30)] | None = None
    times: Times = 1


class Expect(Strict):
    """What this call must carry: `input_contains` texts somewhere in its input."""

    input_contains: list[str] = Field(default_factory=list[str])


class ModelStep(Strict):
    """One model call: a `reply`, or a `fail`."""

    reply: list[Part] | None = None
    fail: Fail | None = None
    expect: Expect | None = None

    @model_validator(mode="after")
    def _one_of(self) -> "ModelStep":
        if (self.reply is None) == (self.fail is None):
            raise ValueError("expected exactly one of reply and fail")
        return self

    @property
    def times(self) -> Times:
        """For how many calls this step is played before the next."""
        if self.fail is not None:
            return self.fail.times
        for cut in self.disconnects():
            return cut.times
        return 1

    def disconnects(self) -> list[Disconnect]:
        """Every place at which the reply is cut."""
        return [entry for entry in self._entries() if isinstance(entry, Disconnect)]

    def gates(self) -> list[str]:
        """The names of the gates at which the reply holds."""
        return [entry.hold for entry in self._entries() if isinstance(entry, Hold)]

    def _entries(self) -> list[Delta | Part]:
        entries: list[Delta | Part] = []
        for part in self.reply or []:
            entries.append(part)
            if isinstance(part, Message):
                entries += part.message.deltas
            elif isinstance(part, Reasoning):
                for block in (*part.reasoning.summary, *part.reasoning.raw):
                    entries += block if isinstance(block, list) else [block]
        return entries


Script = list[ModelStep]
