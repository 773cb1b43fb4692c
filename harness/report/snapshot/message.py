"""A transcript as a value: messages without differences from run to run, and their end."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.protocol.values import dig, obj, text

VARIES: Final = "<varies>"
"""Placeholder for a value that differs from one play to the next; it equals every value."""
# The id of a request in a transcript without order: its method in place of a number.
_METHOD = re.compile(r"<request (?!\d+>)(.+)>", re.DOTALL)
_LEADING_MEMBERS = ("jsonrpc", "method", "type", "id")


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `client` counts from 1, and is 0 if there is only one client.

    `value` is JSON, or a text if the line on the wire was not JSON (`is_garbled`). With
    `any_number` it stands for all messages of its kind, whose number differs from play to play.
    With `any_place` the place of its kind among the others differs.
    """

    is_sent: bool
    value: Any
    client: int = 0
    is_garbled: bool = False
    any_number: bool = False
    any_place: bool = False

    @property
    def line(self) -> str:
        """The message's line in a snapshot's file."""
        place = "(any place) " if self.any_place else ""
        many = "(any number) " if self.any_number else ""
        return f"{'->' if self.is_sent else '<-'} {place}{many}{self.body}"

    @property
    def body(self) -> str:
        """The message without its markers."""
        json_text = dump_json(self.value)
        return f"(no message) {json_text}" if self.is_garbled else json_text


@dataclass(frozen=True, slots=True)
class Transcript:
    """All messages of one play, and the end of its trace.

    Messages whose place differs from play to play (`any_place`) stand at the end, sorted by text,
    and their names have no numbers. With `free` all are like that: no order is kept.
    """

    messages: tuple[Message, ...]
    end: str
    free: bool = False


def escape_unprintable(words: str) -> str:
    """Escape control characters in words that contain a server's text."""
    if words.isprintable():
        return words
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in words)


def dump_json(value: Any, indent: int | None = None) -> str:
    """Return the JSON text of a value, with control characters escaped."""
    json_text = json.dumps(value, ensure_ascii=False, indent=indent)
    if indent is None:
        return escape_unprintable(json_text)
    return "\n".join(map(escape_unprintable, json_text.split("\n")))


def sort_members(value: Any) -> Any:
    """Return `value` with object members sorted at every depth.

    First jsonrpc, method, type and id, then the others by name.
    """
    if isinstance(value, dict):
        members = obj(value)  # pyright: ignore[reportUnknownArgumentType]
        names = sorted(
            members,
            key=lambda name: (
                _LEADING_MEMBERS.index(name) if name in _LEADING_MEMBERS else 9,
                name,
            ),
        )
        return {name: sort_members(members[name]) for name in names}
    if isinstance(value, list):
        return [sort_members(element) for element in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def message_labels(messages: Iterable[Message]) -> Iterator[str]:
    """Yield a name for each message: its method, the request it answers, the kind of its item."""
    messages = list(messages)
    # Without an order, a request may come after its answer.
    all_methods = {key: method for message in messages for key, method in _request_key(message)}
    methods: dict[tuple[bool, str], str] = {}
    for message in messages:
        value = obj(message.value)
        method = text(value.get("method"))
        methods.update(_request_key(message))
        if message.is_garbled:
            yield "a line that is no message"
        elif method:
            kind = text(dig(value, "params", "item", "type"))
            yield f"{method} ({kind})" if kind else method
        elif "result" in value or "error" in value:
            key = (not message.is_sent, dump_json(value.get("id")))
            named = _METHOD.fullmatch(text(value.get("id")))
            of = (
                named[1] if named else methods.get(key) or all_methods.get(key, "something unasked")
            )
            yield f"{'refusal of' if 'error' in value else 'answer to'} {of}"
        else:
            yield _event_label(value, message)


def _request_key(message: Message) -> Iterator[tuple[tuple[bool, str], str]]:
    value = obj(message.value)
    method = text(value.get("method"))
    if method and "id" in value and not message.is_garbled:
        yield (message.is_sent, dump_json(value["id"])), method


def _event_label(value: dict[str, Any], message: Message) -> str:
    kind = text(value.get("type"))
    item = text(dig(value, "item", "type")) or text(dig(value, "item", "item_type"))
    if kind:
        return f"{kind} ({item})" if item else kind
    return "input" if message.is_sent else "output"
