"""Events of a model's stream, and their parser.

Events of unknown types are skipped, since providers add new ones. `engine.sampling` handles the
events in a turn.
"""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from reference_server.model.errors import (
    ModelError,
    response_failed,
    response_incomplete,
    stream_broken,
)

Fields = dict[str, Any]


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    """Parse a number. Raises ValueError for infinity, which has no JSON form."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


# A decoder of text: `json.loads` would check the encoding of every delta.
_decode = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).decode
DEPTH_LIMIT = 100
"""Maximum nesting of an event's JSON; a deeper value could be neither stored nor sent again."""
# JSON escapes that matter for lone surrogates: an escaped backslash, a pair, a lone surrogate.
_SURROGATES = re.compile(
    rb"\\\\|(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


@dataclass(slots=True)
class Answering:
    """The provider named the model that answers, in a header of its response."""

    model: str


@dataclass(slots=True)
class OutputItemAdded:
    """The model begins an output item; `item` is incomplete."""

    index: int | None
    item: Fields


@dataclass(slots=True)
class OutputItemDone:
    """The model has finished an output item; `item` is complete."""

    index: int | None
    item: Fields


@dataclass(slots=True)
class TextDelta:
    """More text of the message at output `index`."""

    index: int | None
    delta: str


@dataclass(slots=True)
class SummaryPartAdded:
    """A section of a reasoning summary begins."""

    index: int | None
    part: int


@dataclass(slots=True)
class SummaryDelta:
    """More text of section `part` of a reasoning summary."""

    index: int | None
    part: int
    delta: str


@dataclass(slots=True)
class ReasoningDelta:
    """More text of raw reasoning block `part`."""

    index: int | None
    part: int
    delta: str


@dataclass(slots=True)
class Completed:
    """The answer is complete."""

    usage: Fields = field(default_factory=dict[str, Any])


ModelEvent = (
    Answering
    | OutputItemAdded
    | OutputItemDone
    | TextDelta
    | SummaryPartAdded
    | SummaryDelta
    | ReasoningDelta
    | Completed
)


def read_event(data: bytes) -> ModelEvent | None:
    """Parse one event; return None for a type that is skipped.

    Raises ModelError if the event reports a failure, or is not a JSON object or nested too deeply.
    """
    if b"\\ud" in data or b"\\uD" in data:
        data = _SURROGATES.sub(_replace_lone_surrogate, data)
    try:
        value: Any = _decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise stream_broken(f"an event is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise stream_broken("an event is not a JSON object")
    if data.count(b"[") + data.count(b"{") > DEPTH_LIMIT and _is_deep(value):
        raise stream_broken(f"an event is nested more than {DEPTH_LIMIT} levels deep")
    fields = cast("Fields", value)
    if fields.get("type") == "response.output_text.delta":
        return TextDelta(fields.get("output_index"), _text(fields, "delta"))
    return _read_other(fields)


def _read_other(fields: Fields) -> ModelEvent | None:
    index = _number(fields, "output_index")
    match fields.get("type"):
        case "response.output_item.added":
            return OutputItemAdded(index, _object(fields, "item"))
        case "response.output_item.done":
            return OutputItemDone(index, _object(fields, "item"))
        case "response.reasoning_summary_part.added":
            return SummaryPartAdded(index, _number(fields, "summary_index") or 0)
        case "response.reasoning_summary_text.delta":
            part = _number(fields, "summary_index") or 0
            return SummaryDelta(index, part, _text(fields, "delta"))
        case "response.reasoning_text.delta":
            part = _number(fields, "content_index") or 0
            return ReasoningDelta(index, part, _text(fields, "delta"))
        case "response.completed":
            return Completed(_object(_object(fields, "response"), "usage"))
        case "response.failed":
            raise response_failed(_object(_object(fields, "response"), "error"))
        case "response.incomplete":
            raise _incomplete(_object(fields, "response"))
        case "error":
            raise response_failed(_object(fields, "error") or fields)
        case _:
            return None


def _incomplete(response: Fields) -> ModelError:
    reason = _object(response, "incomplete_details").get("reason")
    return response_incomplete(str(reason or "no reason given"))


def _object(fields: Fields, key: str) -> Fields:
    value: Any = fields.get(key)
    return cast("Fields", value) if isinstance(value, dict) else {}


def _number(fields: Fields, key: str) -> int | None:
    value: Any = fields.get(key)
    return value if isinstance(value, int) else None


def _text(fields: Fields, key: str) -> str:
    value: Any = fields.get(key)
    return value if isinstance(value, str) else ""


def _replace_lone_surrogate(match: re.Match[bytes]) -> bytes:
    """Return `?` for a lone surrogate, which could be neither stored nor sent, else the match."""
    return match[0] if match[1] or match[0] == b"\\\\" else b"?"


def without_lone_surrogates(value: Any) -> Any:
    """Return a JSON value with `?` for lone surrogates in all its strings, keys included."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-8", "replace"))


def _is_deep(value: Any) -> bool:
    """Return whether a value is nested deeper than DEPTH_LIMIT."""
    level: list[Any] = [value]
    for _ in range(DEPTH_LIMIT):
        inner: list[Any] = []
        for container in level:
            inside: Iterable[Any] = (
                cast("Fields", container).values() if _is_object(container) else container
            )
            inner += [each for each in inside if isinstance(each, dict | list)]
        if not inner:
            return False
        level = inner
    return True


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)
