"""A transcript as a value: messages without what differs from run to run, and how they ended."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.protocol.values import dig, obj, text

VARIES: Final = "<varies>"
"""Stands for a value that differs from one play to the next; it equals every value."""
# What stands for the id of a request where there is no order: its method in place of a number.
_METHOD = re.compile(r"<request (?!\d+>)(.+)>", re.DOTALL)
_FIRST = ("jsonrpc", "method", "type", "id")


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `client` counts from 1, and is 0 where there is one client only.

    `value` is JSON, or a text where the line on the wire was no JSON (`garbled`). With `any_number`
    it stands for all messages of its kind: how many there are differs from play to play. With
    `any_place` its kind has no place among the others, which differs too.
    """

    sent: bool
    value: Any
    client: int = 0
    garbled: bool = False
    any_number: bool = False
    any_place: bool = False

    @property
    def line(self) -> str:
        """As it stands in a file."""
        place = "(any place) " if self.any_place else ""
        many = "(any number) " if self.any_number else ""
        return f"{'->' if self.sent else '<-'} {place}{many}{self.body}"

    @property
    def body(self) -> str:
        """The message alone."""
        shown = dumped(self.value)
        return f"(no message) {shown}" if self.garbled else shown


@dataclass(frozen=True, slots=True)
class Transcript:
    """All messages of one play, and the end of its trace.

    Messages whose place differs from play to play stand at the end (`any_place`), by their texts,
    and their names have no numbers. With `free` that is so of all: no order is kept.
    """

    messages: tuple[Message, ...]
    end: str
    free: bool = False


def printable(words: str) -> str:
    """Words of which a server wrote some: what a terminal would obey is escaped."""
    if words.isprintable():
        return words
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in words)


def dumped(value: Any, indent: int | None = None) -> str:
    """JSON text of a value; what a terminal could not show, or would obey, is escaped."""
    shown = json.dumps(value, ensure_ascii=False, indent=indent)
    if indent is None:
        return printable(shown)
    return "\n".join(map(printable, shown.split("\n")))


def ordered(value: Any) -> Any:
    """The value with its members in one order: the telling ones first, the others by name."""
    if isinstance(value, dict):
        members = obj(value)  # pyright: ignore[reportUnknownArgumentType]
        names = sorted(
            members, key=lambda name: (_FIRST.index(name) if name in _FIRST else 9, name)
        )
        return {name: ordered(members[name]) for name in names}
    if isinstance(value, list):
        return [ordered(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def labels(messages: Iterable[Message]) -> Iterator[str]:
    """Name each message: its method, whose answer it is, the kind of item it tells."""
    messages = list(messages)
    # Where they stand in no order, a request may come after its answer.
    every = {key: method for one in messages for key, method in _request(one)}
    asked: dict[tuple[bool, str], str] = {}
    for message in messages:
        value = obj(message.value)
        method = text(value.get("method"))
        asked.update(_request(message))
        if message.garbled:
            yield "a line that is no message"
        elif method:
            kind = text(dig(value, "params", "item", "type"))
            yield f"{method} ({kind})" if kind else method
        elif "result" in value or "error" in value:
            key = (not message.sent, dumped(value.get("id")))
            named = _METHOD.fullmatch(text(value.get("id")))
            of = named[1] if named else asked.get(key) or every.get(key, "something unasked")
            yield f"{'refusal of' if 'error' in value else 'answer to'} {of}"
        else:
            yield _of_program(value, message)


def _request(message: Message) -> Iterator[tuple[tuple[bool, str], str]]:
    value = obj(message.value)
    method = text(value.get("method"))
    if method and "id" in value and not message.garbled:
        yield (message.sent, dumped(value["id"])), method


def _of_program(value: dict[str, Any], message: Message) -> str:
    kind = text(value.get("type"))
    item = text(dig(value, "item", "type")) or text(dig(value, "item", "item_type"))
    if kind:
        return f"{kind} ({item})" if item else kind
    return "input" if message.sent else "output"
