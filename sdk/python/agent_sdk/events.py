"""The events of a turn, and how they are read from a line of the agent's output.

A class for each type of the specification. A type that is not known here is an `UnknownEvent`.
`raw` of each has the whole object as it was sent, with the members that are not known here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_sdk.errors import ProtocolError
from agent_sdk.fields import integer, is_object, text
from agent_sdk.items import ThreadItem, parse_item

SHOWN_CHARACTERS = 400
"""Characters of a line that an error shows."""


def _raw() -> Any:
    """Return the field `raw`: neither shown nor compared."""
    return field(default_factory=dict[str, Any], repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that were used. Whether of the turn or of the thread so far, is the agent's choice."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadError:
    """The reason why a turn failed."""

    message: str
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStartedEvent:
    """The thread exists, and has this id."""

    thread_id: str
    raw: Mapping[str, Any] = _raw()
    type: Literal["thread.started"] = field(default="thread.started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStartedEvent:
    """The agent works on the turn."""

    raw: Mapping[str, Any] = _raw()
    type: Literal["turn.started"] = field(default="turn.started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompletedEvent:
    """The turn is done; `usage` is None if the agent does not report it."""

    usage: Usage | None
    raw: Mapping[str, Any] = _raw()
    type: Literal["turn.completed"] = field(default="turn.completed", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailedEvent:
    """The turn failed."""

    error: ThreadError
    raw: Mapping[str, Any] = _raw()
    type: Literal["turn.failed"] = field(default="turn.failed", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStartedEvent:
    """An item begins."""

    item: ThreadItem
    raw: Mapping[str, Any] = _raw()
    type: Literal["item.started"] = field(default="item.started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemUpdatedEvent:
    """An item is as far as this."""

    item: ThreadItem
    raw: Mapping[str, Any] = _raw()
    type: Literal["item.updated"] = field(default="item.updated", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCompletedEvent:
    """An item is done."""

    item: ThreadItem
    raw: Mapping[str, Any] = _raw()
    type: Literal["item.completed"] = field(default="item.completed", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadErrorEvent:
    """An error of the stream: fatal if it is the last event, else perhaps a retry."""

    message: str
    raw: Mapping[str, Any] = _raw()
    type: Literal["error"] = field(default="error", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEvent:
    """An event of a type that this SDK does not know, or one without what its type needs."""

    type: str
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)


ThreadEvent = (
    ThreadStartedEvent
    | TurnStartedEvent
    | TurnCompletedEvent
    | TurnFailedEvent
    | ItemStartedEvent
    | ItemUpdatedEvent
    | ItemCompletedEvent
    | ThreadErrorEvent
    | UnknownEvent
)


def parse_line(line: bytes) -> ThreadEvent | None:
    """Return the event of one line, None for a blank one.

    Bytes that are not UTF-8 become U+FFFD. Raises ProtocolError for anything but a JSON object with
    a `type`.
    """
    words = line.decode("utf-8", "replace").lstrip("\ufeff").strip(" \t\r\n")
    if not words:
        return None
    try:
        raw: object = json.loads(words)
    except (ValueError, RecursionError):
        raise _protocol_error(words, "a line that is no JSON") from None
    if not is_object(raw) or not isinstance(raw.get("type"), str):
        raise _protocol_error(words, "a line that is no object with a type")
    return parse_event(raw)


def _protocol_error(words: str, problem: str) -> ProtocolError:
    begin = (
        words
        if len(words) <= SHOWN_CHARACTERS
        else f"{words[:SHOWN_CHARACTERS]}… ({len(words)} characters)"
    )
    return ProtocolError(f"the agent wrote {problem}: {begin}", begin)


def parse_event(raw: Mapping[str, Any]) -> ThreadEvent:
    """Return the event of an object of JSON that has a `type`; it always gives one."""
    kind = text(raw, "type")
    item: object = raw.get("item")
    match kind:
        case "thread.started" if text(raw, "thread_id"):
            return ThreadStartedEvent(thread_id=text(raw, "thread_id"), raw=raw)
        case "turn.started":
            return TurnStartedEvent(raw=raw)
        case "turn.completed":
            return TurnCompletedEvent(usage=_usage(raw.get("usage")), raw=raw)
        case "turn.failed":
            return TurnFailedEvent(error=_error(raw.get("error")), raw=raw)
        case "item.started" if is_object(item):
            return ItemStartedEvent(item=parse_item(item), raw=raw)
        case "item.updated" if is_object(item):
            return ItemUpdatedEvent(item=parse_item(item), raw=raw)
        case "item.completed" if is_object(item):
            return ItemCompletedEvent(item=parse_item(item), raw=raw)
        case "error":
            return ThreadErrorEvent(message=text(raw, "message"), raw=raw)
        case _:
            return UnknownEvent(type=kind, raw=raw)


def _usage(value: object) -> Usage | None:
    if not is_object(value):
        return None
    return Usage(
        input_tokens=integer(value, "input_tokens") or 0,
        cached_input_tokens=integer(value, "cached_input_tokens") or 0,
        output_tokens=integer(value, "output_tokens") or 0,
        raw=value,
    )


def _error(value: object) -> ThreadError:
    raw = value if is_object(value) else {}
    return ThreadError(message=text(raw, "message"), raw=raw)
