"""Tools that plant a bug in the reference server: they replace code and edit messages.

Each tool raises if the code to change does not exist, so that a renamed function cannot turn a bug
into a correct server.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from functools import cache
from typing import Any

Message = dict[str, Any]
Edit = Callable[[str, Message], list[Message]]
"""Function from the kind of a message (`kind_of`) and the message to the messages sent instead."""


def swap(place: str, make: Callable[[Any], Any]) -> None:
    """Replace `package.module:name.attribute` by `make(original)`. LookupError if it is missing.

    For a function that other modules import by name, name the module that uses it.
    """
    module, _, path = place.partition(":")
    owner: Any = importlib.import_module(module)
    *way, last = path.split(".")
    for name in way:
        owner = getattr(owner, name)
    if last not in vars(owner):
        raise LookupError(f"{place}: there is no such thing any more; the bug needs another place")
    setattr(owner, last, make(vars(owner)[last]))


def instead(place: str, value: Any) -> None:
    """Replace `place` by a value, which may be another function. LookupError if it is missing."""
    swap(place, lambda _: value)


def sent(edit: Edit) -> None:
    """Edit the messages that the server sends.

    `edit` gets `reply:METHOD` for an answer, `error:METHOD` for an error, else the method.
    """
    asked = _asked()

    def put(original: Callable[[Any, bytes], None]) -> Any:
        def edited(outbox: Any, line: bytes) -> None:
            message: Message = json.loads(line)
            for one in edit(_kind_of(message, asked), message):
                original(outbox, json.dumps(one, separators=(",", ":")).encode())

        return edited

    swap("reference_server.outbox:Outbox.put", put)


def sent_to(edit: Callable[[int, Message], list[Message]]) -> None:
    """Edit the messages that the server sends to each of its clients.

    `edit` gets the number of the client, from 1 in the order of first messages, and the message; it
    returns the messages to send instead.
    """
    numbers: dict[int, int] = {}

    def put(original: Callable[[Any, bytes], None]) -> Any:
        def edited(outbox: Any, line: bytes) -> None:
            number = numbers.setdefault(id(outbox), len(numbers) + 1)
            for one in edit(number, json.loads(line)):
                original(outbox, json.dumps(one, separators=(",", ":")).encode())

        return edited

    swap("reference_server.outbox:Outbox.put", put)


def received(edit: Callable[[str, Message], Message]) -> None:
    """Edit the messages that the server receives; `edit` gets `answer` as an answer's method."""

    def decode(original: Callable[[bytes], Any]) -> Any:
        def edited(line: bytes) -> Any:
            message: Message = json.loads(line)
            return original(json.dumps(edit(message.get("method", "answer"), message)).encode())

        return edited

    swap("reference_server.connection:decode", decode)


def told(method: str, change: Callable[[Message], None]) -> None:
    """Change the params of every notification or server request of a method, in place."""

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == method:
            change(message["params"])
        return [message]

    sent(edit)


def replied(method: str, change: Callable[[Message], None]) -> None:
    """Change the result of every answer to a method, in place."""

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == f"reply:{method}":
            change(message["result"])
        return [message]

    sent(edit)


def untold(method: str, which: Callable[[Message], bool] = lambda _: True) -> None:
    """Drop the notifications of a method whose params `which` picks, by default all."""

    def edit(kind: str, message: Message) -> list[Message]:
        return [] if kind == method and which(message["params"]) else [message]

    sent(edit)


def items(kind: str, change: Callable[[str, Message], None]) -> None:
    """Change items of a type in all messages; `change` gets `started` or `completed` first."""

    def edit(method: str, message: Message) -> list[Message]:
        if method in ("item/started", "item/completed"):
            item = message["params"]["item"]
            if item["type"] == kind:
                change(method.removeprefix("item/"), item)
        return [message]

    sent(edit)


@cache
def _asked() -> dict[Any, str]:
    """Return a mapping, kept up to date, of the ids of received requests to their methods."""
    asked: dict[Any, str] = {}

    def note(method: str, message: Message) -> Message:
        if "id" in message:
            asked[message["id"]] = method
        return message

    received(note)
    return asked


def _kind_of(message: Message, asked: dict[Any, str]) -> str:
    if "method" in message:
        return message["method"]
    form = "reply" if "result" in message else "error"
    return f"{form}:{asked.get(message.get('id'), '')}"
