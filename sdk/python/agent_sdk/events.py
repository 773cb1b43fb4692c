"""The events of a turn, and their parser: one line of the agent's output is one event.

Each type of the specification has a class; any other type becomes an `UnknownEvent`. `raw` holds
the whole object as the agent sent it, including members without a field here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_sdk.errors import ProtocolError
from agent_sdk.fields import integer, is_object, text
from agent_sdk.items import ThreadItem, parse_item

SHOWN_CHARACTERS = 400
"""Maximum number of characters of a line in the message of an error."""


def _raw() -> Any:
    """Return the dataclass field `raw`, left out of `repr` and of comparisons."""
    return field(default_factory=dict[str, Any], repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens used, in the turn or in the thread so far: the specification leaves this open."""

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
    """The agent created or resumed the thread with this id."""

    thread_id: str
    raw: Mapping[str, Any] = _raw()
    type: Literal["thread.started"] = field(default="thread.started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStartedEvent:
    """The turn started."""

    raw: Mapping[str, Any] = _raw()
    type: Literal["turn.started"] = field(default="turn.started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompletedEvent:
    """The turn completed; `usage` is None if the agent does not report it."""

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
    """An item started."""

    item: ThreadItem
    raw: Mapping[str, Any] = _raw()
    type: Literal["item.started"] = field(default="item.started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemUpdatedEvent:
    """An item that is not complete yet, in its present state."""

    item: ThreadItem
    raw: Mapping[str, Any] = _raw()
    type: Literal["item.updated"] = field(default="item.updated", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCompletedEvent:
    """An item completed."""

    item: ThreadItem
    raw: Mapping[str, Any] = _raw()
    type: Literal["item.completed"] = field(default="item.completed", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadErrorEvent:
    """An error of the stream: fatal if it is the last event, else the agent may be retrying."""

    message: str
    raw: Mapping[str, Any] = _raw()
    type: Literal["error"] = field(default="error", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEvent:
    """An event of an unknown type, or one that lacks the `thread_id` or `item` of its type."""

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
    """Parse one line of output into an event; None for a blank line.

    Bytes that are not UTF-8 become U+FFFD. Raises ProtocolError if the line is not a JSON object
    with a string `type`.
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
    """Return the event for a JSON object; an `UnknownEvent` if its type or form is not known."""
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
