"""The model's side of a scenario, described by intent."""

import json
import re
from collections.abc import Iterator
from email.utils import formatdate
from typing import Annotated, Any, Final, Literal, TypedDict

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from harness.model.pace import MAX_PACE_SECONDS, Pace
from harness.model.parts import (
    Delta,
    Disconnect,
    Hold,
    Malformed,
    Message,
    Part,
    PlanItem,
    Reasoning,
)
from harness.model.strict import Alias, Strict, Times


def _retry_after_tag(value: object) -> str:
    return "text" if isinstance(value, str) else "seconds"


def _check_header_value(value: str) -> str:
    if not re.fullmatch(r"[!-~]([ -~]*[!-~])?", value):
        raise ValueError(f"{value!r} cannot stand in a header; expected one line of ASCII")
    return value


RetryAfter = Annotated[
    Annotated[float, Field(ge=0, le=86_400), Tag("seconds")]
    | Annotated[str, AfterValidator(_check_header_value), Tag("text")],
    Discriminator(_retry_after_tag),
]


class ErrorFields(TypedDict):
    """The code and message of a failure as a caller can read them, "" for none."""

    code: str
    said: str


NO_ERROR: Final[ErrorFields] = {"code": "", "said": ""}


class Fail(Strict):
    """The call fails: by HTTP `status`, or with no status by an error event in the stream.

    `body` is sent with the status instead of the API's error object: a text (an empty one for no
    body at all) or JSON; `body_bytes` sends that many bytes of text. `content_type` is the body's
    declared type. A status below 400 needs a body, which is not a stream of events. `retry_after`
    is in seconds, or a text that is sent unchanged; with `retry_date` the header names the date
    that many seconds from now. `disconnect` closes the connection after the error event.
    """

    status: Annotated[int, Field(ge=200, le=599)] | None = None
    code: str | None = None
    message: str = "scripted failure"
    body: str | dict[str, Any] | None = None
    body_bytes: Annotated[int, Field(ge=1, le=16_000_000)] | None = None
    content_type: str | None = Field(default=None, min_length=1)
    retry_after: RetryAfter | None = None
    retry_date: bool = False
    disconnect: bool = False
    times: Times = 1

    @model_validator(mode="after")
    def _check_combination(self) -> "Fail":
        has_body = self.body is not None or self.body_bytes is not None
        if self.status is None:
            for name in ("body", "body_bytes", "content_type", "retry_after"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} goes with status; without one the stream fails")
        elif self.disconnect:
            raise ValueError("disconnect goes with an error event; a status has no stream to cut")
        elif self.status < 400 and not has_body:
            raise ValueError("a status below 400 is no failure; it needs a body or body_bytes")
        if self.body is not None and self.body_bytes is not None:
            raise ValueError("expected at most one of body and body_bytes")
        if self.retry_date and not isinstance(self.retry_after, float):
            raise ValueError("retry_date goes with retry_after in seconds")
        return self

    def body_to_send(self) -> bytes | None:
        """Return the body, None for the API's error object."""
        if self.body_bytes is not None:
            return b"x" * self.body_bytes
        if self.body is None:
            return None
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()

    def headers(self, now: float) -> dict[str, str]:
        """Return the HTTP headers of the failure; `now` is the time in Unix seconds."""
        headers = {"content-type": self.content_type or "application/json"}
        match self.retry_after:
            case None:
                pass
            case str(text):
                headers["retry-after"] = text
            case seconds if self.retry_date:
                headers["date"] = formatdate(now, usegmt=True)
                headers["retry-after"] = formatdate(now + seconds, usegmt=True)
            case seconds:
                headers["retry-after"] = f"{seconds:g}"
        return headers

    def error_fields(self) -> ErrorFields:
        """Return the failure as the caller can read it; empty if the script gives the body."""
        if self.body_to_send() is not None:
            return NO_ERROR
        return {"code": self.code or "", "said": self.message}


class ToolOutput(Strict):
    """Expected outputs of the tool calls of the thread's last reply.

    `outcome` is that of all of them; each contains the text `contains`, and none contains `lacks`.
    """

    outcome: Literal["ok", "failed", "declined", "refused"]
    contains: str | None = None
    lacks: str | None = None


def _one_of_tag(value: object) -> str:
    return "several" if isinstance(value, list) else "one"


OneOf = Annotated[
    Annotated[str, Tag("one")] | Annotated[list[str], Field(min_length=1), Tag("several")],
    Discriminator(_one_of_tag),
]
"""A text, or a list of alternative texts."""


class Expect(Strict):
    """Conditions of this call: `input_contains` texts, and the outputs of tool calls.

    A list within `input_contains` needs one of its texts. `input_lacks` texts must not occur in the
    input. The other keys compare the call with an earlier one, given by the name `as` of its step:
    with `same_model` both request the same model, with `same_schema` the same output schema or
    none, and with `other_schema` this call does not request the earlier one's schema.
    """

    input_contains: list[OneOf] = Field(default_factory=list[str | list[str]])
    input_lacks: list[str] = Field(default_factory=list[str])
    tool_output: ToolOutput | None = None
    same_model: Alias | None = None
    same_schema: Alias | None = None
    other_schema: Alias | None = None

    @property
    def comparisons(self) -> dict[str, str]:
        """Return each key that compares with an earlier call, and the name of that call's step."""
        names = {key: getattr(self, key) for key in ("same_model", "same_schema", "other_schema")}
        return {key: name for key, name in names.items() if name is not None}


class When(Strict):
    """Conditions for a step: texts that a call's input contains, and texts that it lacks."""

    input_contains: list[OneOf] = Field(default_factory=list[str | list[str]])
    input_lacks: list[str] = Field(default_factory=list[str])


class ModelStep(Strict):
    """One model call: a `reply`, or a `fail`. `as` names it for later calls to be compared with.

    With `when` other calls skip the step, and the step may stay unused. `pace` holds for this step
    and the later ones of its script, until another.
    """

    alias: Alias | None = Field(default=None, alias="as")
    when: When | None = None
    reply: list[Part] | None = None
    fail: Fail | None = None
    expect: Expect | None = None
    pace: Pace | None = None

    @model_validator(mode="after")
    def _check_pace(self) -> "ModelStep":
        if self.pace is not None:
            texts = [entry for _, entry in self.entries() if isinstance(entry, str)]
            seconds = sum(self.pace.seconds_of(len(text)) for text in texts)
            longest = seconds * (1 + self.pace.jitter)
            if longest > MAX_PACE_SECONDS:
                raise ValueError(
                    f"pace: these texts would take up to {longest:.0f} s; "
                    f"at most {MAX_PACE_SECONDS:g} s for an answer"
                )
        return self

    @model_validator(mode="after")
    def _check_reply_or_fail(self) -> "ModelStep":
        if (self.reply is None) == (self.fail is None):
            raise ValueError("expected exactly one of reply and fail")
        return self

    @property
    def times(self) -> Times:
        """Return for how many calls this step is played before the next."""
        if self.fail is not None:
            return self.fail.times
        for _, entry in self.entries():
            if isinstance(entry, Disconnect):
                return entry.as_cut.times
            if isinstance(entry, Malformed):
                return entry.malformed.times
        return 1

    def gates(self) -> list[str]:
        """Return the names of the gates at which the reply holds."""
        return [entry.hold for _, entry in self.entries() if isinstance(entry, Hold)]

    def entries(self) -> Iterator[tuple[tuple[str | int, ...], Delta | Part]]:
        """Yield every part and every entry of a part, with its path below the step."""
        for index, part in enumerate(self.reply or []):
            path = ("reply", index)
            yield path, part
            match part:
                case Message() | PlanItem():
                    key = next(iter(type(part).model_fields))
                    body = part.message if isinstance(part, Message) else part.plan_item
                    for position, delta in enumerate(body.deltas):
                        yield (*path, key, "deltas", position), delta
                case Reasoning():
                    kinds = ("summary", part.reasoning.summary), ("raw", part.reasoning.raw)
                    for name, blocks in kinds:
                        for number, block in enumerate(blocks):
                            for position, delta in enumerate(deltas_of(block)):
                                yield (*path, "reasoning", name, number, position), delta
                case _:
                    pass


def deltas_of(block: str | list[Delta]) -> list[Delta]:
    """Return the deltas of a block; a text is a single delta."""
    return [block] if isinstance(block, str) else block


Script = list[ModelStep]
